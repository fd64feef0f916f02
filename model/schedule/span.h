// What the descriptors in kinds/ share: shapes they accept and sums over stages for their closed
// forms. Nothing here allocates: span functions are on the estimate's path.
#pragma once

#include <span>
#include <string_view>

#include "model/schedule/schedule.h"

namespace trainyard {

// Times of a step's stages taken together.
struct StageTotals {
  PassTimes sum;
  PassTimes slowest;  // the stage with the largest total
};
StageTotals stage_totals(std::span<const PassTimes> times);

// Σ T_i − max T_i plus m times max T_i: what a pipeline takes whose stages wait for the slowest,
// where filling and draining cost `share` of a stage's time. Handbook §8, unlike stages.
Seconds span_by_slowest(PipelineShape shape, const StageTotals& totals, double share);

// For schedules with one chunk a stage.
Expected<void> accepts_one_chunk(PipelineShape shape, std::string_view name);

// Holds for every shape that the schedule accepts.
inline bool always_in_domain(PipelineShape /*shape*/, PassTimes /*times*/) { return true; }

}  // namespace trainyard
