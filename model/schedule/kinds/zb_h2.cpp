// ZB-H2 (Qi et al. 2023): 2(p−i) − 1 forward passes ahead on stage i fill the bubble of ZB-H1, and
// 2p − 1 micro-batches are in flight. Longest span m(F+B+W) + (p−1)(F+B−2W) for W ≤ F; with W > F
// m(F+B+W) + (p−1)(B−F). Steps follow each other at one span: the optimizer's global checks are
// made after the fact (post-validation).
#include <algorithm>

#include "model/schedule/span.h"
#include "model/schedule/zero_bubble.h"

namespace trainyard::kinds {
namespace {

Expected<void> accepts(PipelineShape shape) { return accepts_one_chunk(shape, "zb-h2"); }

ZeroBubbleStage at(PipelineShape shape, int stage) {
  return {.ahead = 2 * (shape.stages - stage) - 1, .delay = 2 * stage};
}

PassList passes(PipelineShape shape) { return zero_bubble_passes(shape, at); }

bool in_domain(PipelineShape shape, PassTimes times) {
  return shape.microbatches >= 2 * shape.stages - 1 || times.forward <= times.input_gradient;
}

Seconds span(PipelineShape shape, std::span<const PassTimes> times) {
  return zero_bubble_times(shape, times, at).longest_span;
}

Seconds makespan(PipelineShape shape, std::span<const PassTimes> times) {
  return zero_bubble_times(shape, times, at).makespan;
}

int weight_gradients_at_end(PipelineShape shape, int stage) {
  return zero_bubble_at_end(shape, at(shape, stage));
}

int chunks_between_halves(PipelineShape shape, int stage) {
  return zero_bubble_between_halves(shape, at(shape, stage));
}

int chunks_in_flight(PipelineShape shape, int stage) {
  return zero_bubble_in_flight(shape, at(shape, stage));
}

int chunks_past_input_gradient(PipelineShape shape, int stage) {
  return chunks_in_flight(shape, stage) - std::min(at(shape, stage).ahead, shape.microbatches);
}

}  // namespace

extern const Schedule zb_h2 = {
    .name = "zb-h2",
    .splits_backward = true,
    .needs_chunks = false,
    .route = Route::loop,
    .optimizer_barrier = false,
    .accepts = accepts,
    .passes = passes,
    .in_domain = in_domain,
    .closed_span = span,
    .closed_makespan = makespan,
    .weight_gradients_at_end = weight_gradients_at_end,
    .chunks_between_halves = chunks_between_halves,
    .chunks_in_flight = chunks_in_flight,
    .chunks_past_input_gradient = chunks_past_input_gradient,
};

}  // namespace trainyard::kinds
