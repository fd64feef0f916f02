// What a sweep found, in short: how many points, the best one, why others were refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/sweep/results/result_file.h"
#include "scenarios/sweep/run_sweep.h"

namespace trainyard {

// How points are put in order: the best first.
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
  std::vector<PointRow> best;  // of those that fit, the first kBestTold in order
  std::string refusal;         // why the first refused point was

  std::int64_t left_out() const {
    return outcome.found + outcome.answered - done - too_large - refused;
  }
};

Expected<SweepSummary> summary_of(const std::filesystem::path& file, const Sweep& sweep,
                                  const SweepOutcome& outcome);

std::string summary_json(const SweepSummary& summary);

}  // namespace trainyard
