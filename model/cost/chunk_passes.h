// F, B and W of every chunk of a stage, for one micro-batch: of the chunk's own layers, of the
// embedding in the network's first chunk, of the output head in its last, with their exposed
// traffic of parameters. All else that the stage's passes contain (sends, other such traffic) is
// spread evenly over its chunks. Where micro-batches go both ways a stage holds two chunks, of
// which each micro-batch meets one.
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

// Passes of one layer of each kind and of the ends, for one micro-batch.
struct UnitPasses {
  // Recomputation included, by the mean over the stage's layers of the kind.
  LayerPasses layers;
  // The forward work that backward repeats of a layer under full recomputation.
  std::array<Seconds, kLayerKinds> full_recompute;
  PassTimes embedding, head;
};

struct StagePasses {
  int stage;
  const StageParameters& held;
  const UnitPasses& units;
  // All passes of one micro-batch on the stage; both ways: the mean of its two chunks.
  const PassTimes& all;
  // What the chunk with the embedding, and the one with the head, has of it more than the mean of
  // the stage's chunks, besides its units.
  PassTimes more_with_embedding = {}, more_with_head = {};
};

// Appends one entry for each chunk that the stage holds.
void append_chunk_passes(const PreparedJob& job, const Plan& plan, const StagePasses& of,
                         std::vector<PassTimes>& out);

// If each chunk of `stage` holds the same layers as that of the stage before, appends the entries
// of that stage once more; else appends nothing and returns false. Requires: these entries were
// appended last; neither stage has an end of the network; layers of a kind take as long on both.
bool repeat_chunk_passes(const PreparedJob& job, const Plan& plan, int stage,
                         std::vector<PassTimes>& out);

// The longest span of the pipeline, with `times` as appended above, stage by stage. Interleaved
// 1F1B whose chunks hold unlike layers is played round by round, not by the closed form.
// Requires: several chunks a stage.
Seconds longest_span_of_chunks(const PreparedJob& job, const Plan& plan,
                               std::span<const PassTimes> times);

}  // namespace trainyard
