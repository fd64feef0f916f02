// Pass lists of the zero-bubble schedules with one chunk a stage (Qi et al. 2023, ZB-H1 and ZB-H2):
// a stage runs `ahead` forward passes, then input gradients and forward passes in turn, each weight
// gradient `delay` input gradients after its own. The two schedules differ in these two numbers
// only. The span assumes free communication.
#pragma once

#include <span>

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
// stages before it wait for, and the weight gradients left to each.
ZeroBubbleTimes zero_bubble_times(PipelineShape shape, std::span<const PassTimes> times,
                                  ZeroBubbleStages stages);

// Those that are put off, m at most.
int zero_bubble_at_end(PipelineShape shape, ZeroBubbleStage stage);

// Of several stages: those and the one at work.
int zero_bubble_between_halves(PipelineShape shape, ZeroBubbleStage stage);

// Activations live until the weight gradient: ahead + delay of them, m at most.
int zero_bubble_in_flight(PipelineShape shape, ZeroBubbleStage stage);

}  // namespace trainyard
