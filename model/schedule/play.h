// The pass-list player: runs the pass lists of all stages in virtual time, O(passes), and reports
// the makespan, every stage's span and the activations in flight. Used by the estimate (for
// schedules without a closed form), the planner and the tests; exact for unlike stages.
#pragma once

#include <span>
#include <vector>

#include "model/schedule/schedule.h"

namespace trainyard {

// Times of one pass of each kind on each stage and chunk, and of a send between two stages. A
// forward-backward pair saves `hidden` of its forward pass's chunk.
struct PlayTimes {
  std::vector<std::vector<PassTimes>> stage_chunk;  // [stage][chunk], of one chunk
  Seconds send;  // from the end of a pass to the start of its successor on another stage
};

struct Played {
  Seconds makespan;                   // from zero to the end of the last pass
  Seconds longest_span;               // of any stage: start of its first to end of its last pass
  std::vector<Seconds> start, end;    // per stage: first start, last end
  std::vector<int> chunks_in_flight;  // per stage: most chunk activations alive at once
};

// An upper bound of the time of a play: at any time some pass runs or some send is on its way.
Seconds longest_play(PipelineShape shape, const PlayTimes& times);

// Plays the pass lists. Times are rounded to whole ticks (model/schedule/ticks.h), so that sums are
// exact. Fails if the lists deadlock, miss a pass or repeat one; the message names stage and pass.
// A chunk's activations live from the start of its forward pass to the end of its backward pass (of
// its weight-gradient pass if the backward is split). Requires: times for every stage and chunk,
// none negative.
Expected<Played> play(const PassList& passes, PipelineShape shape, const PlayTimes& times);

// Play times without communication. `stages` has F, B and W of each stage, which are split evenly
// over the chunks that a micro-batch visits there; or those of every chunk held, the chunks of a
// stage one after the other.
PlayTimes play_times(PipelineShape shape, std::span<const PassTimes> stages);
// The same for equal stages.
PlayTimes uniform_times(PipelineShape shape, PassTimes stage);

}  // namespace trainyard
