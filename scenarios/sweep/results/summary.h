// A short summary of a sweep: the number of points, the best ones, why others were refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/sweep/results/result_file.h"
#include "scenarios/sweep/run_sweep.h"

namespace trainyard {

// How points are ordered, the best first.
struct PointOrder {
  std::string_view sql;
  std::string_view label;  // "throughput"
};
PointOrder order_of(const SweepDocument& sweep);

inline constexpr int kBestTold = 10;

struct SweepSummary {
  std::string name;
  std::filesystem::path file;
  SweepOutcome outcome;
  PointOrder order;
  std::int64_t done = 0, too_large = 0, refused = 0;
  std::vector<PointRow> best;  // the first kBestTold of those that fit, in order
  std::string refusal;         // the reason of the first refused point

  std::int64_t left_out() const {
    return outcome.found + outcome.answered - done - too_large - refused;
  }
};

Expected<SweepSummary> summary_of(const std::filesystem::path& file, const Sweep& sweep,
                                  const SweepOutcome& outcome);

std::string summary_json(const SweepSummary& summary);

}  // namespace trainyard
