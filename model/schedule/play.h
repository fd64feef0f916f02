// The pass-list player: runs the pass lists of all stages in virtual time, O(passes), and reports
// the makespan, every stage's span and the activations in flight. Used by the estimate (for
// schedules without a closed form), the planner and the tests; exact for unlike stages.
#pragma once

#include <span>
#include <vector>

#include "model/schedule/schedule.h"

namespace trainyard {

// Times of one pass of each kind on each stage and chunk, and of a send between neighbouring
// stages; `hidden` of a pair is its forward pass's.
struct PlayTimes {
  std::vector<std::vector<PassTimes>> stage_chunk;  // [stage][chunk], of one chunk
  Seconds send;  // delay between a pass and its successor's start
};

struct Played {
  Seconds makespan;                   // from zero to the end of the last pass
  Seconds longest_span;               // of any stage: start of its first to end of its last pass
  std::vector<Seconds> start, end;    // per stage: first start, last end
  std::vector<int> chunks_in_flight;  // per stage: most chunk activations alive at once
};

// No play takes longer: at any time some pass runs or some send is on its way.
Seconds longest_play(PipelineShape shape, const PlayTimes& times);

// Times are rounded to whole ticks (model/schedule/ticks.h), so that sums are exact. Fails when the
// lists deadlock, miss or repeat a pass: the message names the stage and the pass. A chunk's
// activations live from the start of its forward pass to the end of its backward (its
// weight-gradient, where split) pass. Requires: times for every stage and chunk, none negative.
Expected<Played> play(const PassList& passes, PipelineShape shape, const PlayTimes& times);

// F, B, W of each stage split evenly over the chunks that a micro-batch visits there; or of all
// chunks that are held, those of a stage one after the other. No communication.
PlayTimes play_times(PipelineShape shape, std::span<const PassTimes> stages);
// The same of equal stages.
PlayTimes uniform_times(PipelineShape shape, PassTimes stage);

}  // namespace trainyard
