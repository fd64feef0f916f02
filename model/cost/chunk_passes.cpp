#include "model/cost/chunk_passes.h"

#include <algorithm>
#include <span>

#include "model/cost/memory/memory.h"
#include "model/cost/memory/repeated_layers.h"
#include "model/schedule/rounds.h"
#include "model/schedule/span.h"

namespace trainyard {
namespace {

void add_layers(const PreparedJob& job, const LayersOfChunks& layers, int chunk,
                const UnitPasses& units, PassTimes& sum) {
  if (job.only_kind) {
    sum.add(units.layers[static_cast<std::size_t>(index_of(*job.only_kind))], layers[chunk]);
    return;
  }
  const LayerCounts counts = job.layers_between(layers.before(chunk), layers[chunk]);
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] > 0) sum.add(units.layers[kind], counts[kind]);
  }
}

// What a stage's passes take beyond those of its units, for each of the `chunks` that a micro-batch
// visits. `met`: the share of the chunks held that it visits.
PassTimes beyond_units(const StagePasses& of, double met, int chunks) {
  const StageParameters& held = of.held;
  const UnitPasses& units = of.units;
  PassTimes sum;
  for (std::size_t kind = 0; kind < held.kinds.size(); ++kind) {
    if (held.kinds[kind] > 0) sum.add(units.layers[kind], held.kinds[kind]);
  }
  if (held.embedding) sum.add(units.embedding);
  if (held.head) sum.add(units.head);
  PassTimes rest = of.all;
  rest.add(sum, -met);
  const double share = 1.0 / chunks;
  return {rest.forward * share, rest.input_gradient * share, rest.weight_gradient * share,
          of.all.hidden * share};
}

// Whether two chunks hold equally many layers of each kind.
bool hold_alike(const PreparedJob& job, const LayersOfChunks& layers, int chunk, int other) {
  if (layers[chunk] != layers[other]) return false;
  return job.only_kind || job.layers_between(layers.before(chunk), layers[chunk]) ==
                              job.layers_between(layers.before(other), layers[other]);
}

// Whether they also recompute alike. Requires: a loop.
bool pass_alike(const PreparedJob& job, const Plan& plan, const LayersOfChunks& layers, int chunk,
                int other) {
  const int stages = plan.pipeline_parallel;
  if (!plan.recompute_per_stage.empty() &&
      !(recompute_of(plan, chunk % stages) == recompute_of(plan, other % stages))) {
    return false;
  }
  return hold_alike(job, layers, chunk, other);
}

// Whether the chunks of a loop hold unlike layers. The first and the last chunk may have one layer
// less than the others, for which the embedding or the head stands in (design §3). That cannot be
// told from their times: an end with more layers looks like one with a larger matrix. Of two
// stages a chunk that is only one layer shorter makes the other wait, though both pass equally
// long.
bool layers_are_unlike(const PreparedJob& job, const Plan& plan) {
  const LayersOfChunks layers(plan, job.job.model.layers);
  const int last = plan.pipeline_parallel * plan.virtual_stages - 1;
  for (int chunk = 2; chunk < last; ++chunk) {
    if (!pass_alike(job, plan, layers, chunk, 1)) return true;
  }
  const int at_least = layers[1] - (plan.pipeline_parallel > 2 ? 1 : 0);
  const auto stands_for_one = [&](int count) { return at_least <= count && count <= layers[1]; };
  // An MTP layer counts twice, for it has a head of its own.
  return !stands_for_one(layers[0]) || !stands_for_one(layers[last] + 2 * job.job.model.mtp_layers);
}

// Where a stage recomputes a number of its layers, these are the first ones of each chunk. If
// layers are of several kinds, adds what that takes in each chunk beyond the mean over the stage's
// layers of a kind, which is in the passes already.
void add_own_repeats(const PreparedJob& job, const Plan& plan, const StagePasses& of,
                     const LayersOfChunks& layers, std::span<PassTimes> own) {
  const Recompute recompute = recompute_of(plan, of.stage);
  if (!repeats_some(job.job.training.stack, recompute) || job.only_kind) return;
  if (own.size() > static_cast<std::size_t>(RepeatedInChunks::kMostChunks)) return;
  const PipelineShape shape = pipeline_shape(plan);
  const RepeatedShares shares = repeated_shares(job, plan, of.held, of.stage, recompute);
  const RepeatedInChunks repeated(job, plan, of.stage, recompute);
  for (int chunk = 0; chunk < static_cast<int>(own.size()); ++chunk) {
    const int position = layer_chunk_of(shape, {of.stage, chunk});
    LayerCounts all = job.layers_between(layers.before(position), layers[position]);
    if (position + 1 == layer_chunks(shape)) all[kMtpKind] += job.job.model.mtp_layers;
    const LayerCounts again = repeated.of(chunk);
    PassTimes& passes = own[static_cast<std::size_t>(chunk)];
    for (std::size_t kind = 0; kind < all.size(); ++kind) {
      if (all[kind] == 0) continue;
      passes.input_gradient +=
          (again[kind] - shares[kind] * all[kind]) * of.units.full_recompute[kind];
    }
  }
}

// Moves `more` to one chunk of a stage from its others. Requires: it has others.
void move_to(std::span<PassTimes> chunks, std::size_t chunk, const PassTimes& more) {
  const double others = static_cast<double>(chunks.size()) - 1;
  for (PassTimes& own : chunks) own.add(more, -1 / others);
  chunks[chunk].add(more, 1 + 1 / others);
}

}  // namespace

void append_chunk_passes(const PreparedJob& job, const Plan& plan, const StagePasses& of,
                         std::vector<PassTimes>& out) {
  const PipelineShape shape = pipeline_shape(plan);
  const LayersOfChunks layers(plan, job.job.model.layers);
  const int chunks = chunks_held(shape);
  const double met = shape.chunks / static_cast<double>(chunks);
  const PassTimes more = beyond_units(of, met, shape.chunks);
  const int last = layer_chunks(shape) - 1;
  const std::size_t before = out.size();
  out.resize(before + static_cast<std::size_t>(chunks));
  PassTimes* own = &out[before];
  PassTimes of_layers;
  int counted = -1;  // layers that `of_layers` is of, where all are of one kind
  for (int chunk = 0; chunk < chunks; ++chunk, ++own) {
    const int position = layer_chunk_of(shape, {of.stage, chunk});
    const int count = layers[position];
    if (!job.only_kind || count != counted) {
      of_layers = more;
      add_layers(job, layers, position, of.units, of_layers);
      counted = count;
    }
    *own = of_layers;
    if (position == 0) own->add(of.units.embedding);
    if (position == last) {
      own->add(of.units.head);
      own->add(of.units.layers[kMtpKind], job.job.model.mtp_layers);
    }
  }
  const std::span<PassTimes> all = std::span(out).subspan(before);
  add_own_repeats(job, plan, of, layers, all);
  if (shape.route == Route::both_ways) return;
  if (of.held.embedding) move_to(all, 0, of.more_with_embedding);
  if (of.held.head) move_to(all, all.size() - 1, of.more_with_head);
}

bool repeat_chunk_passes(const PreparedJob& job, const Plan& plan, int stage,
                         std::vector<PassTimes>& out) {
  const PipelineShape shape = pipeline_shape(plan);
  const LayersOfChunks layers(plan, job.job.model.layers);
  const int held = chunks_held(shape);
  for (int chunk = 0; chunk < held; ++chunk) {
    const int own = layer_chunk_of(shape, {stage, chunk});
    if (!hold_alike(job, layers, own, layer_chunk_of(shape, {stage - 1, chunk}))) return false;
  }
  const std::size_t before = out.size() - static_cast<std::size_t>(held);
  out.resize(out.size() + static_cast<std::size_t>(held));
  const auto first = out.begin() + static_cast<std::ptrdiff_t>(before);
  std::copy_n(first, held, first + held);
  return true;
}

Seconds longest_span_of_chunks(const PreparedJob& job, const Plan& plan,
                               std::span<const PassTimes> times) {
  const Schedule& schedule = *plan.schedule;
  const PipelineShape shape = pipeline_shape(plan);
  const bool plays_rounds =
      schedule.closed_span == one_f_one_b_span && shape.stages <= kMostStagesInRounds;
  if (plays_rounds && layers_are_unlike(job, plan)) return span_of_rounds(shape, times);
  return longest_span(schedule, shape, times);
}

}  // namespace trainyard
