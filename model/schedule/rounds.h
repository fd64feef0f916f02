// Interleaved 1F1B where the chunks of a stage are unlike: stages run slow and fast chunks at
// unlike times, and a round takes longer than the passes of the slowest stage. No closed form is
// known; the passes follow each other so regularly that they can be played in a few arrays, and of
// the rounds that repeat only one needs to be.
#pragma once

#include <span>

#include "model/schedule/schedule.h"

namespace trainyard {

// Whether chunks of a stage, but for that with the embedding and that with the head, take unlike
// times. `times`: of all chunks.
bool chunks_are_unlike(PipelineShape shape, std::span<const PassTimes> times);

// Stages that `span_of_rounds` takes at most.
inline constexpr int kMostStagesInRounds = 128;

// From the first forward pass of stage 0 to its last backward pass, which is the step's: exact,
// with free communication. O(p) for a pass of every stage. Requires: v > 1, p at most the above.
Seconds span_of_rounds(PipelineShape shape, std::span<const PassTimes> times);

}  // namespace trainyard
