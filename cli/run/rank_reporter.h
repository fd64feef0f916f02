// `trainyard run --watch`: a line of JSON on stderr for each look at the ranks, at most five a
// second, for whoever watches the run from outside (scenarios/rank_status.h).
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
  // What an operation of a rank's list does.
  using Describe = std::function<std::string(int rank, std::int64_t operation)>;

  explicit RankReporter(Describe described) : described_(std::move(described)) {}

  void look(Boards& boards);       // says nothing if it has just said something
  void say(Boards& boards) const;  // in any case

 private:
  using Clock = std::chrono::steady_clock;

  Describe described_;
  Clock::time_point next_{};
};

}  // namespace trainyard
