// The span of interleaved 1F1B when the chunks of a stage differ. A round (p micro-batches through
// all v chunks) then takes longer than the passes of the slowest stage, because the stages reach
// slow and fast chunks at different times. No closed form is known. The passes follow each other so
// regularly that they can be played in a few arrays, and of rounds that repeat only one is played.
#pragma once

#include <span>

#include "model/schedule/schedule.h"

namespace trainyard {

// Whether the chunks of some stage take different times, apart from the chunks with the embedding
// and with the head. `times`: of all chunks, those of a stage one after the other.
bool chunks_are_unlike(PipelineShape shape, std::span<const PassTimes> times);

// The most stages that span_of_rounds accepts.
inline constexpr int kMostStagesInRounds = 128;

// From the start of stage 0's first forward pass to the end of its last backward pass, which is the
// longest span of the step. Exact with free communication; takes O(p) for each pass of a stage.
// Requires: v > 1 and p at most kMostStagesInRounds.
Seconds span_of_rounds(PipelineShape shape, std::span<const PassTimes> times);

}  // namespace trainyard
