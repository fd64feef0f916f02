// The zero-bubble schedules with one chunk a stage (Qi et al. 2023, ZB-H1 and ZB-H2): a stage runs
// `ahead` forward passes, then input gradients and forward passes in turn, each weight gradient
// `delay` input gradients after its own. The two schedules differ in these two numbers, in where
// their spans are exact and in whether steps wait for each other. The span assumes free
// communication.
#pragma once

#include <span>
#include <string_view>

#include "model/schedule/schedule.h"

namespace trainyard {

struct ZeroBubbleStage {
  int ahead = 1;  // forward passes before the first input gradient, m at most
  int delay = 0;  // input gradients between one and the weight gradient that belongs to it
};
// Of stage `stage`, for as many micro-batches as it takes.
using ZeroBubbleStages = ZeroBubbleStage (*)(PipelineShape shape, int stage);

// Of one stage: whole backward passes.
PassList zero_bubble_passes(PipelineShape shape, ZeroBubbleStages stages);

struct ZeroBubbleTimes {
  Seconds longest_span, makespan;
};
// For every stage, when its last input gradient ends if it never starves, what that makes the
// stages before it wait for, and the weight gradients left to each. Unlike stages of fewer
// micro-batches than the first one runs ahead: what their pass lists take when played.
ZeroBubbleTimes zero_bubble_times(PipelineShape shape, std::span<const PassTimes> times,
                                  ZeroBubbleStages stages);

// Those that are put off, m at most.
int zero_bubble_at_end(PipelineShape shape, ZeroBubbleStage stage);

// Of several stages: those and the one at work.
int zero_bubble_between_halves(PipelineShape shape, ZeroBubbleStage stage);

// Activations live until the weight gradient: ahead + delay of them, m at most.
int zero_bubble_in_flight(PipelineShape shape, ZeroBubbleStage stage);
// Of them those past their input gradient.
int zero_bubble_past_input_gradient(PipelineShape shape, ZeroBubbleStage stage);

// (F + B − k·W) / (F + B + W), where each stage puts off k weight gradients more than the one
// before it (handbook §8).
double zero_bubble_fill(PassTimes times, ZeroBubbleStages stages);

// What is a schedule's own.
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
