// F, B and W of every chunk of a stage: its own layers, the embedding in the first chunk of the
// network, the output head in the last. What a stage's passes have beyond these (sends, what shows
// of parameters' traffic) is spread evenly over its chunks. Where micro-batches go both ways a
// stage has two, of which each micro-batch meets one.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"

namespace trainyard {

using LayerPasses = std::array<PassTimes, kLayerKinds>;  // of one layer of each kind

struct UnitPasses {
  LayerPasses layers;  // with the mean of what is repeated of the stage's layers of the kind
  std::array<Seconds, kLayerKinds> full_recompute;  // of one layer of each that is repeated whole
  PassTimes embedding, head;
};

struct StagePasses {
  int stage;
  const StageParameters& held;  // by it
  const UnitPasses& units;
  const PassTimes& all;  // of one micro-batch, in the chunks that it visits: their mean
};

// Appends as many entries as the stage has chunks.
void append_chunk_passes(const PreparedJob& job, const Plan& plan, const StagePasses& of,
                         std::vector<PassTimes>& out);

// Appends those of the stage before once more, if this one's chunks have the same layers each; else
// false. Requires: they were appended last; neither stage has an end of the network, and what
// passes take is the same on both.
bool repeat_chunk_passes(const PreparedJob& job, const Plan& plan, int stage,
                         std::vector<PassTimes>& out);

// The longest span of the pipeline, `times` of its chunks as above: of interleaved 1F1B exact where
// their layers are unlike. Requires: several chunks a stage.
Seconds longest_span_of_chunks(const PreparedJob& job, const Plan& plan,
                               std::span<const PassTimes> times);

}  // namespace trainyard
