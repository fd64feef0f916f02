#include "model/cost/sharding/data_parallel.h"

#include <algorithm>

#include "model/cost/memory/offload.h"
#include "model/cost/sharding/stage_copies.h"
#include "model/cost/sharding/stage_sync.h"
#include "model/cost/sharding/unlike_units.h"
#include "model/inline_vector.h"

namespace trainyard {
namespace {

// Gradients can only be kept sharded (stage 2 and up) when every micro-batch's are reduced at once.
bool reduces_every_microbatch(const Plan& plan) { return plan.held_zero_stage() >= 2; }

// Share of a stage's layers that one micro-batch passes: under Route::both_ways one of the two
// copies.
double share_met(const Plan& plan) { return plan.schedule->route == Route::both_ways ? 0.5 : 1.0; }

// In which order a pass visits the units of a stage.
enum class PassWay { forward, backward };

// A stage's communication of parameters beside its passes.
class StageOverlap {
 public:
  StageOverlap(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
               const StageParameters& stage, const StageWork& work, PricedMessages& prices)
      : plan_(plan),
        links_(links),
        model_(job.job.model),
        stack_(job.job.training.stack),
        stage_(stage),
        work_(work),
        shape_(shape_of(plan)),
        split_(splits_backward(*plan.schedule, shape_.stages)),
        units_(stage_sync(job, plan, links, stage, prices)),
        sync_(units_.all()),
        over_(sync_groups(plan, links, units_)) {
    layers_each_ = stage.layers / chunks_held(shape_);
    longer_chunks_ = stage.layers % chunks_held(shape_);
    add_runs();
    layer_ = 1.0 / std::max(1, stage.layers) * units_.layers;
  }

  // ZeRO-3: gathers in the forward and backward pass, reductions in the backward pass.
  DataParallelCost fetched_for_every_pass() const {
    DataParallelCost cost;
    add(cost, &PassTimes::forward, kGather, forward_cover(), PassWay::forward);
    if (most_are_split()) {
      const Cover input =
          cover(&PassTimes::input_gradient, work_.backward, sync_.gather, *over_.gathered);
      add(cost, &PassTimes::input_gradient, kGather, input, PassWay::backward);
      add(cost, &PassTimes::weight_gradient, kReduce, reduction_cover(), PassWay::backward);
    } else {
      add(cost, nullptr, kBoth, whole_cover(), PassWay::backward);
    }
    return cost;
  }

  // ZeRO-2. In a pipeline no pass waits for its last reductions: they go on beside the passes that
  // follow, as long as there are some.
  DataParallelCost reduced_in_every_pass() const {
    DataParallelCost cost;
    const Part part = most_are_split() ? &PassTimes::weight_gradient : nullptr;
    const Cover cover = most_are_split() ? reduction_cover() : whole_cover();
    if (shape_.stages == 1 || !plan_.overlap.data_parallel) {
      add(cost, part, kReduce, cover, PassWay::backward);
      return cost;
    }
    const Cover ahead = forward_cover();
    const double times = plan_.microbatches;
    const Seconds all = times * share_met(plan_) * sync_.reduce.time;
    const Seconds backward = times * whole(part);
    const Seconds others = std::max(Seconds(0), behind_first_gradient() - backward);
    const ShownInPass shown = shown_beside(part, kReduce, cover.rate, PassWay::backward);
    const Seconds waits = cover.rate * (shown.all - shown.at_ends);
    note_chunks_with_ends(cost, &PassTimes::weight_gradient, waits, [&](int chunk) {
      const ShownInPass own = shown_in_chunk(part, kReduce, cover.rate, PassWay::backward, chunk);
      return cover.rate * (own.all - own.at_ends);
    });
    const int last = std::min(shape_.stages, plan_.microbatches);
    cost.beside_ramps.draining = beside_sends(last * sync_.reduce, *over_.reduced, cover.rate);
    const Seconds room = backward * cover.rate + times * waits + others * ahead.rate -
                         times * sends_beside(cost.beside_ramps.draining);
    cost.end = left_of_last_pass(cover) + left_of_passes_at_end(cover, waits);
    cost.queued = all - room;
    const Seconds left = times * waits + std::max(cost.end, cost.queued);
    const Seconds hidden = std::max(Seconds(0), all - left) / times;
    const Seconds in_backward = std::min(hidden, whole(part) * cover.rate);
    cost.microbatch.weight_gradient = waits + in_backward * cover.lost;
    cost.microbatch.forward = (hidden - in_backward) * ahead.lost;
    return cost;
  }

  // ZeRO-1 and 2: gathers of updated weights, those of both ends first, then the layers of all
  // chunks; the first pass of a chunk waits for its own. Weights that are kept outside the device
  // are all gathered right after the update, with nothing beside them, and go back there.
  void gather_updated(const Training& training, DataParallelCost& cost) const {
    const Seconds time = sync_.gather.time;
    if (weights_away(training, plan_)) {
      cost.update = time;
      return;
    }
    cost.start = time;
    if (!plan_.overlap.data_parallel || stack_.exposed_gathers) return;
    const Cover cover = forward_cover();
    const double rate = cover.rate;
    GathersAhead gathers((units_.embedding.gather.time + units_.head.gather.time) / rate);
    if (shape_.route == Route::both_ways) {
      pass_both_ways(gathers, rate);
    } else {
      UnitSequence units = sequence(&PassTimes::forward, kGather, rate);
      units.first.gather = units.last.gather = Seconds(0);
      const Seconds others = (shape_.stages - 1.0) / shape_.chunks * work_.layers.forward;
      for (const ChunkRun& run : runs_) {
        take_chunk(run.first, PassWay::forward, units);
        gathers.pass_in_turn(run.size, units, others);
      }
    }
    cost.beside_ramps.filling = beside_sends(sync_.gather, *over_.gathered, rate);
    cost.start = gathers.late() * rate;
    cost.gathered = hidden(sync_.gather, cost.start);
    cost.lost_to_gathers = cover.lost;
  }

  // ZeRO-0 and 1: reductions once a step, beside the last micro-batch's backward passes.
  void reduce_at_end(DataParallelCost& cost) const {
    cost.end = sync_.reduce.time;
    if (!plan_.overlap.data_parallel || plan_.no_sync()) return;
    const Cover cover = reduction_cover();
    cost.beside_ramps.draining = beside_last_sends(cover);
    cost.end = left_at_end(cover);
    cost.reduced = hidden(sync_.reduce, cost.end);
    cost.lost += cost.reduced * cover.lost;
  }

  // Copies are added up behind all of the stage's own reductions, whose links they take too. But
  // where the whole gradients of an embedding are added up, which its reduction waits for, they are
  // beside reductions of other parameters that are `left`, as far as these fill other links.
  Seconds hidden_of_ends(Seconds sum, Seconds left) const {
    const bool whole =
        plan_.zero_stage == 0 || (plan_.zero_stage == 1 && links_.dense_replica.size == 1);
    const bool before = plan_.overlap.data_parallel && whole;
    const Seconds others = left - (units_.embedding + units_.head).reduce.time;
    if (!before || sum <= Seconds(0) || others <= Seconds(0)) return Seconds(0);
    const GroupLinks ends = ends_of_pipeline(links_);
    return hidden_beside(others, data_traffic(sync_.reduce, *over_.reduced), sum, ends,
                         passing_use(ends));
  }

 private:
  using Part = Seconds PassTimes::*;  // null: both halves of a backward pass
  // How often a pass gathers a unit's weights, and reduces its gradients.
  struct Moves {
    double gathers = 0, reductions = 0;
  };
  static constexpr Moves kGather{1, 0}, kReduce{0, 1}, kBoth{1, 1};

  // Whether backward passes are split; where micro-batches go both ways a few of the last ones are.
  bool most_are_split() const { return split_ && shape_.route != Route::both_ways; }

  // Time from a stage's first gradient to its last, for one that never waits: all m micro-batches'
  // passes without the forward passes that are in flight before the first backward pass (on this
  // stage, or on that where a micro-batch turns back). The way of the first micro-batch there and
  // back needs no term: it is as long as what the pipeline adds to m passes (handbook §8). Where
  // backward is split, the first weight gradient waits for the input gradients of all stages.
  Seconds behind_first_gradient() const {
    const int turn = shape_.route == Route::loop ? shape_.stages - 1 : 0;
    const double before =
        static_cast<double>(plan_.schedule->chunks_in_flight(shape_, turn)) / shape_.chunks;
    const Seconds forward = whole(&PassTimes::forward);
    const Seconds weight = whole(&PassTimes::weight_gradient);
    const Seconds waits = split_ ? (shape_.stages - 1.0) * weight : Seconds(0);
    return plan_.microbatches * (forward + whole(nullptr)) - before * forward - waits;
  }

  // What a pass offers to the communication beside it.
  Cover cover(Part part, const ExchangeTimes& exchanges, Traffic traffic,
              const GroupLinks& group) const {
    const bool some = traffic.time > Seconds(0);
    const double contending = some ? traffic.contending / traffic.time : 0.0;
    const double slowdown = stack_.overlap_slowdown * contending;
    const Seconds all = whole(part);
    const Seconds copies = part_of(work_.copies, part);
    const Cover busy = cover_of(all - copies, exchanges, slowdown, data_traffic(traffic, group),
                                links_, work_.use);
    if (copies <= Seconds(0)) return busy;
    // A copy goes on while the pass is slowed. While the pass waits for the rest of the copy, the
    // links are free.
    const Seconds done = (all - copies) * busy.rate;
    const Seconds lost = done * busy.lost;
    const Seconds beside = done + std::max(Seconds(0), copies - lost);
    return {beside / all, std::max(Seconds(0), lost - copies) / beside};
  }
  static DataTraffic data_traffic(Traffic traffic, const GroupLinks& group) {
    if (traffic.time <= Seconds(0)) return {group, ring_use(group)};
    return {group, mean_use(group, traffic.free / traffic.time, traffic.crossing / traffic.time,
                            traffic.pattern)};
  }
  // What sends meet of `traffic`, which goes on at `rate` beside the passes.
  BesideSends beside_sends(Traffic traffic, const GroupLinks& group, double rate) const {
    const GroupLinks& pipeline = links_.pipeline;
    return {traffic.time / rate,
            stretched_beside(data_traffic(traffic, group), pipeline, passing_use(pipeline))};
  }
  // A micro-batch's sends from this stage, forward and back, if they share links with what they are
  // `beside`.
  Seconds sends_beside(const BesideSends& beside) const {
    const double sends = 2.0 * shape_.chunks / shape_.stages;
    return beside.stretch > 1 ? sends * work_.around : Seconds(0);
  }
  // What sends meet of reductions once a step. Those of a chunk begin where the last micro-batch
  // leaves it, and all stages wait for that micro-batch; so all of its sends meet reductions, if
  // these last from one send to the next.
  BesideSends beside_last_sends(const Cover& cover) const {
    BesideSends beside = beside_sends(sync_.reduce, *over_.reduced, cover.rate);
    const Seconds send = 1.0 / shape_.stages * work_.around;
    constexpr Seconds kAlways(1e30);
    if (beside.time >= shape_.chunks * beside.stretch * send) beside.time = kAlways;
    return beside;
  }
  Cover forward_cover() const {
    return cover(&PassTimes::forward, work_.forward, sync_.gather, *over_.gathered);
  }
  Cover whole_cover() const {
    ExchangeTimes exchanges = work_.backward;  // a ring has nothing in weight gradients
    exchanges.tensor += work_.weight.tensor;
    exchanges.context += work_.weight.context;
    exchanges.expert += work_.weight.expert;
    const bool mostly_reduces = sync_.reduce.time >= sync_.gather.time;
    return cover(nullptr, exchanges, sync_.gather + sync_.reduce,
                 mostly_reduces ? *over_.reduced : *over_.gathered);
  }
  Cover reduction_cover() const {
    if (!split_) return whole_cover();
    return cover(&PassTimes::weight_gradient, work_.weight, sync_.reduce, *over_.reduced);
  }

  // Time between the last backward passes of two chunks of a stage, in which it reduces. On a loop
  // the last micro-batches come round through the other stages first. In a V the first stage still
  // has passes of the last p micro-batches in the chunk of the way out
  // (model/schedule/kinds/zb_v.cpp).
  Seconds between_chunks() const {
    const double chunks = shape_.chunks;
    if (shape_.route == Route::loop) return (shape_.stages - 1) / chunks * work_.layers.backward();
    if (shape_.route != Route::vee || !stage_.embedding) return Seconds(0);
    const int left = std::min(shape_.stages, plan_.microbatches);
    return left / chunks * work_.layers.backward() - 1 / chunks * work_.layers.weight_gradient;
  }

  // In a V, and where micro-batches go both ways, all stages end at once. Without an optimizer
  // barrier a stage has more time for its reductions by as much as it began later: in a V by one
  // forward pass (not the first stage), which waited for its own weights; both ways by one forward
  // pass of each stage before it.
  Seconds begun_later() const {
    const bool waits = plan_.optimizer_barrier || !plan_.overlap.data_parallel;
    if (waits) return Seconds(0);
    if (shape_.route == Route::both_ways) return from_end() * work_.layers.forward;
    if (shape_.route != Route::vee || stage_.embedding) return Seconds(0);
    const Seconds gather = stack_.exposed_gathers ? Seconds(0) : sync_.gather.time;
    return 1.0 / shape_.chunks * std::max(work_.layers.forward, gather);
  }

  // Where micro-batches go both ways a stage has two copies of layers. The near one is for those
  // that enter at the nearer end of the pipeline, from_end() stages away, and may have the
  // embedding; the far one may have the head (model/schedule/kinds/dualpipe.cpp).
  int from_end() const { return std::min(work_.stage, shape_.stages - 1 - work_.stage); }
  int from_middle() const { return shape_.stages / 2 - 1 - from_end(); }
  enum class Copy { near, far };
  UnitSequence copy(Part part, Moves moves, double rate, Copy which) const {
    UnitSequence units = sequence(part, moves, rate);
    units.layers = (stage_.layers + (which == Copy::near ? 1 : 0)) / 2;
    units.has_first = units.has_first && which == Copy::near;
    units.has_last = units.has_last && which == Copy::far;
    for (PassUnit* end : {&units.first, &units.last}) {  // of its own copy, not the mean of both
      end->work = end->work / share_met(plan_);
      end->gather = end->gather / share_met(plan_);
      end->reduce = end->reduce / share_met(plan_);
    }
    return units;
  }

  // The first micro-batch of the near copy comes through from_end() stages; that of the far copy
  // comes 2·from_middle() forward passes later.
  void pass_both_ways(GathersAhead& gathers, double rate) const {
    const Seconds forward = work_.layers.forward;
    gathers.other_work(from_end() * forward);
    for (const Copy which : {Copy::near, Copy::far}) {
      UnitSequence units = copy(&PassTimes::forward, kGather, rate, which);
      units.first.gather = units.last.gather = Seconds(0);
      gathers.pass(units);
      gathers.other_work(2.0 * from_middle() * forward);
    }
  }

  // Reductions left at the end. After the far copy's last gradients, the near copy still has passes
  // up to its own last gradients, beside which the far copy's are reduced.
  Seconds left_of_both_ways(Cover cover) const {
    const Part part = from_end() == 0 ? nullptr : &PassTimes::weight_gradient;
    const Seconds left = left_of_reductions(backwards(copy(part, kReduce, cover.rate, Copy::far)));
    const Seconds input = work_.layers.input_gradient;
    const int inputs =
        from_end() == 0 ? from_middle() + 1 : std::max(0, from_middle() - (from_end() - 1));
    const Seconds between = from_middle() * work_.layers.weight_gradient + inputs * input;
    const UnitSequence near = copy(&PassTimes::weight_gradient, kReduce, cover.rate, Copy::near);
    return cover.rate * left_of_reductions(backwards(near), std::max(Seconds(0), left - between));
  }

  // The last gradients' reductions that are left behind the last pass.
  Seconds left_at_end(Cover cover) const {
    if (shape_.route == Route::both_ways) {
      return std::max(Seconds(0), left_of_both_ways(cover) - begun_later());
    }
    const Seconds between = between_chunks();
    const Part part = split_ ? &PassTimes::weight_gradient : nullptr;
    UnitSequence units = backwards(sequence(part, kReduce, cover.rate));
    Seconds left;
    for (std::size_t i = runs_.size(); i-- > 0;) {
      take_chunk(runs_[i].first, PassWay::backward, units);
      bool settled = false;  // further chunks of the run leave as much as they find
      for (int passed = 0; passed < runs_[i].size && !settled; ++passed) {
        const Seconds found = left;
        const bool is_last = passed == 0 && i + 1 == runs_.size();
        if (!is_last) left = std::max(Seconds(0), left - between);
        left = left_of_reductions(units, left);
        settled = left == found;
      }
    }
    return std::max(Seconds(0), left * cover.rate - begun_later());
  }

  // Passes at the end of a stage's list that follow each other with nothing between, so that the
  // next one waits for what each leaves: weight-gradient passes that the schedule puts off; on a
  // loop with several chunks, those of micro-batches in flight behind the last forward pass. In
  // each of them units wait `waits` for the reductions of others.
  Seconds left_of_passes_at_end(Cover cover, Seconds waits) const {
    const bool in_chunks = shape_.route == Route::loop && shape_.chunks > 1;
    if (!most_are_split() && !in_chunks) return Seconds(0);
    const Part part = most_are_split() ? &PassTimes::weight_gradient : nullptr;
    const int in_flight = plan_.schedule->chunks_in_flight(shape_, shape_.stages - 1);
    const int passes = most_are_split() ? work_.passes_at_end : in_flight;
    const Seconds each = sync_.reduce.time - (whole(part) * cover.rate + waits);
    return (passes - 1) * std::max(Seconds(0), each) / shape_.chunks;
  }

  // Where units wait for the reductions of the units two before them, what the last pass leaves.
  Seconds left_of_last_pass(Cover cover) const {
    const bool both_ways = shape_.route == Route::both_ways;
    const Part part = split_ || both_ways ? &PassTimes::weight_gradient : nullptr;
    UnitSequence units = backwards(both_ways ? copy(part, kReduce, cover.rate, Copy::near)
                                             : sequence(part, kReduce, cover.rate));
    if (!both_ways) take_chunk(0, PassWay::backward, units);
    return std::max(Seconds(0), shown_in_pass(units).at_ends * cover.rate - begun_later());
  }

  // Without a pipeline every schedule is the same: one chunk, and nothing is gained by splitting.
  static PipelineShape shape_of(const Plan& plan) {
    PipelineShape shape = pipeline_shape(plan);
    if (shape.stages == 1) shape.chunks = 1;
    return shape;
  }

  static Seconds part_of(const PassTimes& times, Part part) {
    return part == nullptr ? times.backward() : times.*part;
  }

  Seconds whole(Part part) const {
    return part_of(work_.embedding, part) + part_of(work_.layers, part) + part_of(work_.head, part);
  }

  // The units of a stage with one of its layers, in the order of a forward pass, messages in
  // seconds of the pass beside them (PassUnit).
  UnitSequence sequence(Part part, Moves moves, double rate) const {
    const auto unit = [&](Seconds work, const SyncTimes& sync) {
      return PassUnit{work, moves.gathers * sync.gather.time / rate,
                      moves.reductions * sync.reduce.time / rate};
    };
    UnitSequence units{.has_first = stage_.embedding, .has_last = stage_.head};
    const double met = share_met(plan_);  // the other micro-batches do not pass this end
    const double layers = std::max(1, stage_.layers) * met;
    units.layer = unit(part_of(work_.layers, part) / layers, layer_);
    if (units.has_first) units.first = unit(part_of(work_.embedding, part), met * units_.embedding);
    if (units.has_last) units.last = unit(part_of(work_.head, part), met * units_.head);
    return units;
  }
  // Work of a layer's pass before its routed experts, beside which their weights come. A backward
  // pass under full recomputation begins with the forward pass.
  Seconds before_experts(Part part, std::size_t kind) const {
    const Seconds forward = work_.before_experts[kind];
    if (part == &PassTimes::forward) return forward;
    const double again = work_.repeated[kind];
    return again * forward + (1 - again) * work_.before_experts_backward[kind];
  }
  // Sets the number of layers and the ends to those of a chunk, for a pass this way.
  void take_chunk(int chunk, PassWay way, UnitSequence& units) const {
    const bool embedding = stage_.embedding && chunk == 0;
    const bool head = stage_.head && chunk + 1 == shape_.chunks;
    units.layers = layers_each_ + (chunk < longer_chunks_ ? 1 : 0);
    units.has_first = way == PassWay::forward ? embedding : head;
    units.has_last = way == PassWay::forward ? head : embedding;
  }
  // Consecutive chunks with the same units: the first chunk, the longer ones, the others, the last.
  struct ChunkRun {
    int first, size;
  };
  void add_runs() {
    const int last = shape_.chunks - 1;
    int first = 0;
    for (const int end : {1, std::clamp(longer_chunks_, 1, std::max(1, last)), last, last + 1}) {
      if (end > first) runs_.push_back({first, end - first});
      first = std::max(first, end);
    }
  }

  UnlikeUnit unlike_layer(std::size_t kind, Part part, Moves moves, double rate) const {
    const double share = 1.0 / std::max(1, stage_.layers);
    const bool moe = layer_kind_at(model_, static_cast<int>(kind)).moe;
    const double with_experts = layers_with_experts(model_, stage_);
    const SyncTimes experts = moe ? 1 / with_experts * units_.experts : SyncTimes{};
    const auto dense = [&](Traffic SyncTimes::*of) {
      return share * ((units_.layers.*of).time - (units_.experts.*of).time);
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

  // One layer of each kind, and the ends.
  struct UnlikeUnits {
    std::array<UnlikeUnit, kLayerKinds> layers;
    UnlikeUnit first, last;
  };
  UnlikeUnits unlike_units(Part part, Moves moves, double rate) const {
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
  // A chunk that the stage holds.
  struct Chunk {
    int first, layers;  // MTP layers included, behind all others
    bool has_first, has_last;
  };
  Chunk chunk_of(int chunk) const {
    const int position = layer_chunk_of(shape_, {work_.stage, chunk});
    const bool last = position + 1 == layer_chunks(shape_);
    const int mtp_layers = last ? model_.mtp_layers : 0;
    if (shape_.stages == 1) return {0, model_.layers + mtp_layers, true, true};
    const LayersOfChunks layers(plan_, model_.layers);
    return {layers.before(position), layers[position] + mtp_layers, position == 0, last};
  }
  std::size_t kind_at(int layer) const {
    return static_cast<std::size_t>(index_of(layer_kind(model_, layer)));
  }
  ShownInPass shown_forward(const Chunk& of, const UnlikeUnits& units) const {
    PassOfUnlikeUnits pass;
    if (of.has_first) pass.add(units.first);
    for (int i = 0; i < of.layers; ++i) pass.add(units.layers[kind_at(of.first + i)]);
    if (of.has_last) pass.add(units.last);
    return pass.shown();
  }
  ShownInPass shown_backward(const Chunk& of, const UnlikeUnits& units) const {
    PassOfUnlikeUnits pass;
    if (of.has_last) pass.add(units.last);
    for (int i = of.layers; i-- > 0;) pass.add(units.layers[kind_at(of.first + i)]);
    if (of.has_first) pass.add(units.first);
    return pass.shown();
  }
  // Exposed messages in the passes of a micro-batch through all chunks, unit by unit, for layers of
  // several kinds.
  ShownInPass shown_one_by_one(Part part, Moves moves, double rate, PassWay way) const {
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
  bool has_unlike_units() const {
    if (stage_.experts > 0) return true;
    return std::ranges::count_if(stage_.kinds, [](int layers) { return layers > 0; }) > 1;
  }

  ShownInPass shown_beside(Part part, Moves moves, double rate, PassWay way) const {
    if (has_unlike_units()) return shown_one_by_one(part, moves, rate, way);
    ShownInPass seen;
    if (shape_.route == Route::both_ways) {  // each copy is in half of the passes
      for (const Copy which : {Copy::near, Copy::far}) {
        const UnitSequence units = copy(part, moves, rate, which);
        seen +=
            share_met(plan_) * shown_in_pass(way == PassWay::backward ? backwards(units) : units);
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

  ShownInPass shown_in_chunk(Part part, Moves moves, double rate, PassWay way, int chunk) const {
    const bool forward = way == PassWay::forward;
    if (has_unlike_units()) {
      const UnlikeUnits units = unlike_units(part, moves, rate);
      return forward ? shown_forward(chunk_of(chunk), units)
                     : shown_backward(chunk_of(chunk), units);
    }
    UnitSequence units = sequence(part, moves, rate);
    if (!forward) units = backwards(units);
    take_chunk(chunk, way, units);
    return shown_in_pass(units);
  }

  // `all`: what all chunks of the stage show; `shown(chunk)`: one.
  template <typename Shown>
  void note_chunks_with_ends(DataParallelCost& cost, Part part, Seconds all, Shown shown) const {
    const bool in_chunks = shape_.chunks > 1 && shape_.route != Route::both_ways;
    if (!in_chunks) return;
    const Seconds mean = 1.0 / shape_.chunks * all;
    if (stage_.embedding) cost.more_with_embedding.*part += shown(0) - mean;
    if (stage_.head) cost.more_with_head.*part += shown(shape_.chunks - 1) - mean;
  }

  void add(DataParallelCost& cost, Part part, Moves moves, const Cover& cover, PassWay way) const {
    const Traffic all =
        share_met(plan_) * (moves.gathers * sync_.gather + moves.reductions * sync_.reduce);
    ShownInPass seen{all.time, Seconds(0)};
    if (plan_.overlap.data_parallel) {
      seen = shown_beside(part, moves, cover.rate, way);
      seen.all *= cover.rate;
      const Part of = part == nullptr ? &PassTimes::input_gradient : part;
      note_chunks_with_ends(cost, of, seen.all, [&](int chunk) {
        return cover.rate * shown_in_chunk(part, moves, cover.rate, way, chunk).all;
      });
      seen.all += hidden(all, seen.all) * cover.lost;
      seen.at_ends *= cover.rate;
    }
    (part == nullptr ? cost.microbatch.input_gradient : cost.microbatch.*part) += seen.all;
    // No micro-batch waits for weight-gradient passes.
    if (part != &PassTimes::weight_gradient) cost.at_ends += seen.at_ends;
  }

  static Seconds hidden(Traffic traffic, Seconds left) {
    return std::max(Seconds(0), traffic.time - left);
  }

  const Plan& plan_;
  const PlanLinks& links_;
  const Transformer& model_;
  const Stack& stack_;
  const StageParameters& stage_;
  const StageWork& work_;
  PipelineShape shape_;
  bool split_;
  int layers_each_ = 0, longer_chunks_ = 0;  // layers of a chunk; first chunks with one more
  InlineVector<ChunkRun, 4> runs_;
  StageSync units_;
  SyncTimes sync_;   // of all
  SyncTimes layer_;  // of each
  SyncGroups over_;
};

}  // namespace

DataParallelCost data_parallel_cost(const PreparedJob& job, const Plan& plan,
                                    const PlanLinks& links, const StageParameters& stage,
                                    const StageWork& work, PricedMessages& prices) {
  const StageOverlap overlap(job, plan, links, stage, work, prices);
  DataParallelCost cost;
  if (plan.held_zero_stage() >= 3) {
    cost = overlap.fetched_for_every_pass();
  } else {
    if (reduces_every_microbatch(plan)) cost = overlap.reduced_in_every_pass();
    overlap.gather_updated(job.job.training, cost);
    if (!reduces_every_microbatch(plan)) overlap.reduce_at_end(cost);
  }
  const CopySums copies = sums_of_copies(job, plan, links, stage);
  const Seconds shown =
      copies.ends + copies.mirrors - overlap.hidden_of_ends(copies.ends, cost.end);
  cost.end += shown;
  cost.queued += shown;
  return cost;
}

ParameterTraffic parameter_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                                   const StageParameters& stage) {
  PricedMessages prices(links);
  const StageSync sync = stage_sync(job, plan, links, stage, prices);
  const SyncTimes all = sync.all();
  const SyncTimes experts =
      1.0 / std::max(1, layers_with_experts(job.job.model, stage)) * sync.experts;
  return {all.gather.time, all.reduce.time, experts.gather.time, experts.reduce.time};
}

}  // namespace trainyard
