// The progress of every rank of a run, as one line of JSON for each look at all ranks: `trainyard
// run --watch` writes these lines to stderr while it runs, and the desktop program reads them.
// `trainyard calibrate --watch` writes only the share that is done.
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
  std::int64_t operation = -1;             // index in the rank's list; −1: before the first
  std::int64_t operations = 0;             // length of the list
  std::string at;                          // what the operation does, in words
  std::string call;                        // the call that it waits in; empty: it computes
  Seconds step_time;                       // of the last step that it finished; 0: none
  double loss = 0;                         // of that step; NaN: the rank runs alone
  Bytes peak_memory;

  bool operator==(const RankStatus&) const = default;
};

// The line, without a line feed.
std::string rank_status_line(const std::vector<RankStatus>& ranks);
// None if the line is something else.
std::optional<std::vector<RankStatus>> read_rank_status(std::string_view line);

// {"progress":0.25}, for work without ranks to look at. Requires: 0 <= fraction <= 1.
std::string progress_line(double fraction);
std::optional<double> read_progress(std::string_view line);

}  // namespace trainyard
