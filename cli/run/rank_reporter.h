// `trainyard run --watch`: writes a line of JSON to stderr each time the ranks are looked at, at
// most five a second, for a program that watches the run (scenarios/rank_status.h).
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/supervision/board.h"

namespace trainyard {

class RankReporter {
 public:
  using Boards = std::vector<std::optional<Board>>;
  // Describes an operation of a rank's list.
  using Describe = std::function<std::string(int rank, std::int64_t operation)>;

  explicit RankReporter(Describe described) : described_(std::move(described)) {}

  void look(Boards& boards);       // writes nothing if the last line is recent
  void say(Boards& boards) const;  // always writes

 private:
  using Clock = std::chrono::steady_clock;

  Describe described_;
  Clock::time_point next_{};
};

}  // namespace trainyard
