#include "model/schedule/span.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard {

StageTotals stage_totals(std::span<const PassTimes> times) {
  StageTotals totals;
  for (const PassTimes& stage : times) {
    totals.sum.forward += stage.forward;
    totals.sum.input_gradient += stage.input_gradient;
    totals.sum.weight_gradient += stage.weight_gradient;
    if (stage.total() > totals.slowest.total()) totals.slowest = stage;
  }
  return totals;
}

Seconds span_by_slowest(PipelineShape shape, const StageTotals& totals, double share) {
  const Seconds slowest = totals.slowest.total();
  return shape.microbatches * slowest + (totals.sum.total() - slowest) * share;
}

Expected<void> accepts_one_chunk(PipelineShape shape, std::string_view name) {
  if (shape.chunks == 1) return {};
  return failure("/plan/virtual_stages",
                 fmt::format("found {} with {}, allowed 1", shape.chunks, name));
}

}  // namespace trainyard
