// ZB-H1 (Qi et al. 2023): 1F1B whose backward is split, weight gradients delayed so that every
// stage holds p micro-batches. Longest span m(F+B+W) + (p−1)(F+B−W) for W ≤ F; a pipeline with p in
// flight cannot start its first input gradient before pF + (p−1)B, so that with W > F it is
// m(F+B+W) + (p−1)B.
#include <algorithm>

#include "model/schedule/span.h"
#include "model/schedule/zero_bubble.h"

namespace trainyard::kinds {
namespace {

Expected<void> accepts(PipelineShape shape) { return accepts_one_chunk(shape, "zb-h1"); }

ZeroBubbleStage at(PipelineShape shape, int stage) {
  return {.ahead = shape.stages - stage, .delay = stage};
}

PassList passes(PipelineShape shape) { return zero_bubble_passes(shape, at); }

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

extern const Schedule zb_h1 = {
    .name = "zb-h1",
    .splits_backward = true,
    .needs_chunks = false,
    .route = Route::loop,
    .optimizer_barrier = true,
    .accepts = accepts,
    .passes = passes,
    .in_domain = always_in_domain,
    .closed_span = span,
    .closed_makespan = makespan,
    .weight_gradients_at_end = weight_gradients_at_end,
    .chunks_between_halves = chunks_between_halves,
    .chunks_in_flight = chunks_in_flight,
    .chunks_past_input_gradient = chunks_past_input_gradient,
};

}  // namespace trainyard::kinds
