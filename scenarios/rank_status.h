// Where every rank of a run is, as one line of JSON: what `trainyard run --watch` writes to stderr
// while it runs, and the desktop program reads. One look at all ranks is one line. `trainyard
// calibrate --watch` writes how far it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"

namespace trainyard {

struct RankStatus {
  int rank = 0;
  std::string host;
  std::string state;                       // "starting", "running", …; "absent": not there yet
  std::int64_t steps_done = 0, steps = 0;  // warm-up included
  std::int64_t operation = -1;             // of the rank's list; −1: before the first
  std::int64_t operations = 0;             // in the list
  std::string at;                          // what the operation does
  std::string call;                        // that it waits in; empty: it computes
  Seconds step_time;                       // of the last step that is done; 0: none
  double loss = 0;                         // of that step; no number: of a rank alone
  Bytes peak_memory;

  bool operator==(const RankStatus&) const = default;
};

// Without a line feed.
std::string rank_status_line(const std::vector<RankStatus>& ranks);
// Nothing: the line is something else.
std::optional<std::vector<RankStatus>> read_rank_status(std::string_view line);

// {"progress":0.25}, of work that has no ranks to look at. Requires: from 0 to 1.
std::string progress_line(double fraction);
std::optional<double> read_progress(std::string_view line);

}  // namespace trainyard
