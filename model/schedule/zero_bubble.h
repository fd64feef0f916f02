// The zero-bubble schedules with one chunk a stage (Qi et al. 2023, ZB-H1 and ZB-H2). A stage runs
// `ahead` forward passes, then input-gradient and forward passes in turn; each weight gradient
// comes `delay` input gradients after its own. The two schedules differ in these two numbers, in
// where their spans are exact and in whether steps wait for each other. Spans assume free
// communication.
#pragma once

#include <span>
#include <string_view>

#include "model/schedule/schedule.h"

namespace trainyard {

struct ZeroBubbleStage {
  int ahead = 1;  // forward passes before the first input gradient (at most m are run)
  int delay = 0;  // input gradients that come between an input gradient and its weight gradient
};
// The two numbers of stage `stage`, for a step with enough micro-batches.
using ZeroBubbleStages = ZeroBubbleStage (*)(PipelineShape shape, int stage);

// The pass lists. A pipeline of one stage runs whole backward passes.
PassList zero_bubble_passes(PipelineShape shape, ZeroBubbleStages stages);

struct ZeroBubbleTimes {
  Seconds longest_span, makespan;
};
// For every stage: when its last input gradient ends if the stage never starves, and not before the
// one of the stage behind it and its own B; then its remaining weight gradients follow. If stages
// differ and m is less than stage 0's `ahead`, no closed form holds and the pass lists are played.
ZeroBubbleTimes zero_bubble_times(PipelineShape shape, std::span<const PassTimes> times,
                                  ZeroBubbleStages stages);

// Weight gradients that end the list of a stage: the delayed ones and the last, at most m.
int zero_bubble_at_end(PipelineShape shape, ZeroBubbleStage stage);

// Schedule::chunks_between_halves: the same number; 0 in a pipeline of one stage.
int zero_bubble_between_halves(PipelineShape shape, ZeroBubbleStage stage);

// Schedule::chunks_in_flight: ahead + delay, at most m; activations live until the weight gradient.
int zero_bubble_in_flight(PipelineShape shape, ZeroBubbleStage stage);
// Schedule::chunks_past_input_gradient: how many of those are past their input gradient.
int zero_bubble_past_input_gradient(PipelineShape shape, ZeroBubbleStage stage);

// Schedule::fill: r = (F + B − k·W) / (F + B + W), within 0 … 1, where each stage delays k weight
// gradients more than the stage before it (handbook §8).
double zero_bubble_fill(PassTimes times, ZeroBubbleStages stages);

// What distinguishes one of these schedules from the other.
struct ZeroBubbleKind {
  std::string_view name;
  bool optimizer_barrier;
  Expected<void> (*accepts)(PipelineShape shape);
  bool (*in_domain)(PipelineShape shape, PassTimes times);
};

template <ZeroBubbleStages kStages>
constexpr Schedule zero_bubble_schedule(ZeroBubbleKind kind) {
  using Times = std::span<const PassTimes>;
  return {
      .name = kind.name,
      .splits_backward = true,
      .needs_chunks = false,
      .route = Route::loop,
      .optimizer_barrier = kind.optimizer_barrier,
      .accepts = kind.accepts,
      .passes = [](PipelineShape shape) { return zero_bubble_passes(shape, kStages); },
      .in_domain = kind.in_domain,
      .closed_span =
          [](PipelineShape shape, Times times) {
            return zero_bubble_times(shape, times, kStages).longest_span;
          },
      .closed_makespan =
          [](PipelineShape shape, Times times) {
            return zero_bubble_times(shape, times, kStages).makespan;
          },
      .fill = [](PipelineShape /*shape*/,
                 PassTimes times) { return zero_bubble_fill(times, kStages); },
      .weight_gradients_at_end =
          [](PipelineShape shape, int stage) {
            return zero_bubble_at_end(shape, kStages(shape, stage));
          },
      .chunks_between_halves =
          [](PipelineShape shape, int stage) {
            return zero_bubble_between_halves(shape, kStages(shape, stage));
          },
      .chunks_in_flight =
          [](PipelineShape shape, int stage) {
            return zero_bubble_in_flight(shape, kStages(shape, stage));
          },
      .chunks_past_input_gradient =
          [](PipelineShape shape, int stage) {
            return zero_bubble_past_input_gradient(shape, kStages(shape, stage));
          },
  };
}

}  // namespace trainyard
