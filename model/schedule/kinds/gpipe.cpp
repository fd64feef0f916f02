// GPipe (Huang et al. 2019): all forward passes, then all backward passes in reverse order.
#include <algorithm>

#include "model/schedule/span.h"

namespace trainyard::kinds {
namespace {

Expected<void> accepts(PipelineShape shape) { return accepts_one_chunk(shape, "gpipe"); }

PassList passes(PipelineShape shape) {
  std::vector<Pass> stage;
  stage.reserve(static_cast<std::size_t>(shape.microbatches) * 2);
  for (int i = 0; i < shape.microbatches; ++i) stage.push_back({PassKind::forward, i, 0});
  for (int i = shape.microbatches - 1; i >= 0; --i) stage.push_back({PassKind::backward, i, 0});
  return PassList(static_cast<std::size_t>(shape.stages), stage);
}

// All forward passes, then all backward passes: Σ F_i + (m−1)·max F_i, and the same for B + W (a
// flow shop each). Exact for any stages; (m+p−1)(F+B+W) when they are equal.
Seconds span(PipelineShape shape, std::span<const PassTimes> times) {
  Seconds sum;
  Seconds slowest_forward;
  Seconds slowest_backward;
  for (const PassTimes& stage : times) {
    sum += stage.total();
    slowest_forward = std::max(slowest_forward, stage.forward);
    slowest_backward = std::max(slowest_backward, stage.backward());
  }
  return sum + (shape.microbatches - 1) * (slowest_forward + slowest_backward);
}

int chunks_in_flight(PipelineShape shape, int /*stage*/) { return shape.microbatches; }

}  // namespace

extern const Schedule gpipe = {
    .name = "gpipe",
    .splits_backward = false,
    .needs_chunks = false,
    .route = Route::loop,
    .optimizer_barrier = true,
    .accepts = accepts,
    .passes = passes,
    .in_domain = always_in_domain,
    .closed_span = span,
    .closed_makespan = span,
    .fill = fill_of_one_chunk,
    .chunks_in_flight = chunks_in_flight,
};

}  // namespace trainyard::kinds
