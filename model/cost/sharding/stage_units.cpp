#include "model/cost/sharding/stage_units.h"

#include <algorithm>

#include "model/cost/sharding/gradient_buckets.h"

namespace trainyard {

StageUnits::StageUnits(const PreparedJob& job, const Plan& plan, PipelineShape shape,
                       const StageParameters& stage, const StageWork& work, const StageSync& sync)
    : job_(job),
      plan_(plan),
      model_(job.job.model),
      stage_(stage),
      work_(work),
      sync_(sync),
      shape_(shape),
      layer_(1.0 / std::max(1, stage.layers) * sync.layers),
      layers_each_(stage.layers / chunks_held(shape)),
      longer_chunks_(stage.layers % chunks_held(shape)) {
  add_runs();
}

UnitSequence StageUnits::copy(PassPart part, UnitMoves moves, double rate, LayerCopy which) const {
  UnitSequence units = sequence(part, moves, rate);
  units.layers = (stage_.layers + (which == LayerCopy::near ? 1 : 0)) / 2;
  units.has_first = units.has_first && which == LayerCopy::near;
  units.has_last = units.has_last && which == LayerCopy::far;
  for (PassUnit* end : {&units.first, &units.last}) {  // of its own copy, not the mean of both
    end->work = end->work / share_met(plan_);
    end->gather = end->gather / share_met(plan_);
    end->reduce = end->reduce / share_met(plan_);
  }
  return units;
}

UnitSequence StageUnits::sequence(PassPart part, UnitMoves moves, double rate) const {
  const auto unit = [&](Seconds work, const SyncTimes& sync) {
    return PassUnit{work, moves.gathers * sync.gather.time / rate,
                    moves.reductions * sync.reduce.time / rate};
  };
  UnitSequence units{.has_first = stage_.embedding, .has_last = stage_.head};
  const double met = share_met(plan_);  // the other micro-batches do not pass this end
  const double layers = std::max(1, stage_.layers) * met;
  units.layer = unit(part_of(work_.layers, part) / layers, layer_);
  if (units.has_first) units.first = unit(part_of(work_.embedding, part), met * sync_.embedding);
  if (units.has_last) units.last = unit(part_of(work_.head, part), met * sync_.head);
  return units;
}

// Work of a layer's pass before its routed experts, beside which their weights come. A backward
// pass under full recomputation begins with the forward pass.
Seconds StageUnits::before_experts(PassPart part, std::size_t kind) const {
  const Seconds forward = work_.before_experts[kind];
  if (part == &PassTimes::forward) return forward;
  const double again = work_.repeated[kind];
  return again * forward + (1 - again) * work_.before_experts_backward[kind];
}

void StageUnits::take_chunk(int chunk, PassWay way, UnitSequence& units) const {
  const bool embedding = stage_.embedding && chunk == 0;
  const bool head = stage_.head && chunk + 1 == shape_.chunks;
  units.layers = layers_each_ + (chunk < longer_chunks_ ? 1 : 0);
  units.has_first = way == PassWay::forward ? embedding : head;
  units.has_last = way == PassWay::forward ? head : embedding;
}

namespace {

// Units in the order of a backward pass, each bucket as one.
UnitSequence united(const UnitSequence& units, const BucketedChunk& cut) {
  const PassUnit head = units.has_first ? units.first : PassUnit{};
  const PassUnit embedding = units.has_last ? units.last : PassUnit{};
  UnitSequence all{.first = head + cut.with_head * units.layer,
                   .layer = cut.each * units.layer,
                   .last = cut.rest * units.layer,
                   .layers = cut.full,
                   .has_first = units.has_first,
                   .has_last = cut.rest > 0 || (units.has_last && !cut.one)};
  (cut.one ? all.first : all.last) += embedding;
  return all;
}

}  // namespace

UnitSequence StageUnits::in_buckets(int chunk, PassWay way, const UnitSequence& units,
                                    UnitMoves moves, double rate) const {
  if (!uses_buckets(job_.job.training, plan_)) return units;
  const SyncTimes& experts = sync_.experts;
  const bool by_experts =
      2 * (experts.gather + experts.reduce).time > (sync_.layers.gather + sync_.layers.reduce).time;
  const BucketedChunk cut = buckets_of_chunk(job_, plan_, stage_, chunk, by_experts);
  const UnitSequence of = way == PassWay::backward ? units : backwards(units);
  UnitSequence all = united(of, cut);
  // Where the cuts are those of experts, dense buckets are shared among them.
  const int dense = buckets_of_chunk(job_, plan_, stage_, chunk, false).messages;
  const double each = static_cast<double>(dense) / std::max(1, cut.messages) / rate;
  const PassUnit latency{.gather = each * moves.gathers * sync_.bucket.gather.time,
                         .reduce = each * moves.reductions * sync_.bucket.reduce.time};
  // The gathers of ends that are apart come first of all (StageOverlap::gathered_first).
  const EndsApart apart = ends_apart(model_, plan_);
  const PassUnit without_gather{.reduce = latency.reduce};
  if (all.has_first) all.first += apart.head ? without_gather : latency;
  all.layer += latency;
  if (cut.rest > 0 || (all.has_last && !apart.embedding)) all.last += latency;
  if (of.has_last && apart.embedding) all.last += without_gather;
  return way == PassWay::backward ? all : backwards(all);
}

void StageUnits::add_runs() {
  const int last = shape_.chunks - 1;
  int first = 0;
  for (const int end : {1, std::clamp(longer_chunks_, 1, std::max(1, last)), last, last + 1}) {
    if (end > first) runs_.push_back({first, end - first});
    first = std::max(first, end);
  }
}

UnlikeUnit StageUnits::unlike_layer(std::size_t kind, PassPart part, UnitMoves moves,
                                    double rate) const {
  const double share = 1.0 / std::max(1, stage_.layers);
  const bool moe = layer_kind_at(model_, static_cast<int>(kind)).moe;
  const double with_experts = layers_with_experts(model_, stage_);
  const SyncTimes experts = moe ? 1 / with_experts * sync_.experts : SyncTimes{};
  const auto dense = [&](Traffic SyncTimes::*of) {
    return share * ((sync_.layers.*of).time - (sync_.experts.*of).time);
  };
  UnlikeUnit unit;
  unit.work = part_of(work_.each[kind], part);
  unit.work += share / share_met(plan_) * part_of(work_.copies, part);
  unit.before_experts = std::min(before_experts(part, kind), unit.work);
  unit.gather = moves.gathers / rate * dense(&SyncTimes::gather);
  unit.gather_of_experts = moves.gathers / rate * experts.gather.time;
  unit.reduce = moves.reductions / rate * (dense(&SyncTimes::reduce) + experts.reduce.time);
  return unit;
}

StageUnits::UnlikeUnits StageUnits::unlike_units(PassPart part, UnitMoves moves,
                                                 double rate) const {
  UnlikeUnits units;
  for (std::size_t kind = 0; kind < units.layers.size(); ++kind) {
    if (stage_.kinds[kind] > 0) units.layers[kind] = unlike_layer(kind, part, moves, rate);
  }
  const UnitSequence mean = sequence(part, moves, rate);
  const auto whole = [times = 1 / share_met(plan_)](const PassUnit& on_average) {
    return UnlikeUnit{.work = times * on_average.work,
                      .gather = times * on_average.gather,
                      .reduce = times * on_average.reduce};
  };
  units.first = whole(mean.first);
  units.last = whole(mean.last);
  return units;
}

StageUnits::Chunk StageUnits::chunk_of(int chunk) const {
  const int position = layer_chunk_of(shape_, {work_.stage, chunk});
  const bool last = position + 1 == layer_chunks(shape_);
  const int mtp_layers = last ? model_.mtp_layers : 0;
  if (shape_.stages == 1) return {0, model_.layers + mtp_layers, true, true};
  const LayersOfChunks layers(plan_, model_.layers);
  return {layers.before(position), layers[position] + mtp_layers, position == 0, last};
}

std::size_t StageUnits::kind_at(int layer) const {
  return static_cast<std::size_t>(index_of(layer_kind(model_, layer)));
}

ShownInPass StageUnits::shown_forward(const Chunk& of, const UnlikeUnits& units) const {
  PassOfUnlikeUnits pass;
  if (of.has_first) pass.add(units.first);
  for (int i = 0; i < of.layers; ++i) pass.add(units.layers[kind_at(of.first + i)]);
  if (of.has_last) pass.add(units.last);
  return pass.shown();
}

ShownInPass StageUnits::shown_backward(const Chunk& of, const UnlikeUnits& units) const {
  PassOfUnlikeUnits pass;
  if (of.has_last) pass.add(units.last);
  for (int i = of.layers; i-- > 0;) pass.add(units.layers[kind_at(of.first + i)]);
  if (of.has_first) pass.add(units.first);
  return pass.shown();
}

// Exposed messages in the passes of a micro-batch through all chunks, unit by unit, for layers of
// several kinds.
ShownInPass StageUnits::shown_one_by_one(PassPart part, UnitMoves moves, double rate,
                                         PassWay way) const {
  const UnlikeUnits units = unlike_units(part, moves, rate);
  ShownInPass seen;
  for (int chunk = 0; chunk < chunks_held(shape_); ++chunk) {
    const Chunk of = chunk_of(chunk);
    seen += share_met(plan_) *
            (way == PassWay::forward ? shown_forward(of, units) : shown_backward(of, units));
  }
  return seen;
}

// Whether layers differ, or experts make parts of a layer wait for weights of their own.
bool StageUnits::has_unlike_units() const {
  if (stage_.experts > 0) return true;
  return std::ranges::count_if(stage_.kinds, [](int layers) { return layers > 0; }) > 1;
}

ShownInPass StageUnits::shown(PassPart part, UnitMoves moves, double rate, PassWay way) const {
  if (has_unlike_units()) return shown_one_by_one(part, moves, rate, way);
  ShownInPass seen;
  if (shape_.route == Route::both_ways) {  // each copy is in half of the passes
    for (const LayerCopy which : {LayerCopy::near, LayerCopy::far}) {
      const UnitSequence units = copy(part, moves, rate, which);
      seen += share_met(plan_) * shown_in_pass(way == PassWay::backward ? backwards(units) : units);
    }
    return seen;
  }
  UnitSequence units = sequence(part, moves, rate);
  if (way == PassWay::backward) units = backwards(units);
  for (const ChunkRun& run : runs_) {
    take_chunk(run.first, way, units);
    seen += run.size * shown_in_pass(units);
  }
  return seen;
}

ShownInPass StageUnits::shown_in_chunk(PassPart part, UnitMoves moves, double rate, PassWay way,
                                       int chunk) const {
  const bool forward = way == PassWay::forward;
  if (has_unlike_units()) {
    const UnlikeUnits units = unlike_units(part, moves, rate);
    return forward ? shown_forward(chunk_of(chunk), units) : shown_backward(chunk_of(chunk), units);
  }
  UnitSequence units = sequence(part, moves, rate);
  if (!forward) units = backwards(units);
  take_chunk(chunk, way, units);
  return shown_in_pass(units);
}

}  // namespace trainyard
