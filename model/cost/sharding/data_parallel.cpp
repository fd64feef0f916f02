#include "model/cost/sharding/data_parallel.h"

#include <algorithm>

#include "model/cost/memory/offload.h"
#include "model/cost/sharding/gradient_buckets.h"
#include "model/cost/sharding/stage_copies.h"
#include "model/cost/sharding/stage_sync.h"
#include "model/cost/sharding/stage_units.h"

namespace trainyard {
namespace {

// Gradients can only be kept sharded (stage 2 and up) when every micro-batch's are reduced at once.
bool reduces_every_microbatch(const Plan& plan) { return plan.held_zero_stage() >= 2; }

// A stage's communication of parameters beside its passes.
class StageOverlap {
 public:
  StageOverlap(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
               const StageParameters& stage, const StageWork& work, PricedMessages& prices)
      : plan_(plan),
        links_(links),
        stack_(job.job.training.stack),
        stage_(stage),
        work_(work),
        shape_(shape_of(plan)),
        split_(splits_backward(*plan.schedule, shape_.stages)),
        apart_(uses_buckets(job.job.training, plan) ? ends_apart(job.job.model, plan)
                                                    : EndsApart{true, true}),
        each_(stage_sync(job, plan, links, stage, prices)),
        sync_(each_.all()),
        over_(sync_groups(plan, links, each_)),
        units_(job, plan, shape_, stage, work, each_) {}

  // ZeRO-3: gathers in the forward and backward pass, reductions in the backward pass.
  DataParallelCost fetched_for_every_pass() const {
    DataParallelCost cost;
    add(cost, &PassTimes::forward, kGather, forward_cover(), PassWay::forward);
    if (most_are_split()) {
      const Cover input =
          cover(&PassTimes::input_gradient, work_.backward, sync_.gather, over_.gathered);
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
    const PassPart part = most_are_split() ? &PassTimes::weight_gradient : nullptr;
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
    const ShownInPass shown = units_.shown(part, kReduce, cover.rate, PassWay::backward);
    const Seconds waits = cover.rate * (shown.all - shown.at_ends);
    note_chunks_with_ends(cost, &PassTimes::weight_gradient, waits, [&](int chunk) {
      const ShownInPass own =
          units_.shown_in_chunk(part, kReduce, cover.rate, PassWay::backward, chunk);
      return cover.rate * (own.all - own.at_ends);
    });
    const int last = std::min(shape_.stages, plan_.microbatches);
    cost.beside_ramps.draining = beside_sends(last * sync_.reduce, over_.reduced, cover.rate);
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
  // chunks (or the ends with the layers of their buckets); the first pass of a chunk waits for its
  // own. Weights that are kept outside the device are all gathered right after the update, with
  // nothing beside them, and go back there.
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
    GathersAhead gathers(gathered_first() / rate);
    if (shape_.route == Route::both_ways) {
      pass_both_ways(gathers, rate);
    } else {
      UnitSequence units = units_.sequence(&PassTimes::forward, kGather, rate);
      if (apart_.embedding) units.first.gather = Seconds(0);
      if (apart_.head) units.last.gather = Seconds(0);
      const Seconds others = (shape_.stages - 1.0) / shape_.chunks * work_.layers.forward;
      for (const StageUnits::ChunkRun& run : units_.runs()) {
        units_.take_chunk(run.first, PassWay::forward, units);
        const UnitSequence chunk =
            units_.in_buckets(run.first, PassWay::forward, units, kGather, rate);
        gathers.pass_in_turn(run.size, chunk, others);
      }
    }
    cost.beside_ramps.filling = beside_sends(sync_.gather, over_.gathered, rate);
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
    const Seconds others = left - (each_.embedding + each_.head).reduce.time;
    if (!before || sum <= Seconds(0) || others <= Seconds(0)) return Seconds(0);
    const GroupLinks ends = ends_of_pipeline(links_);
    return hidden_beside(others, data_traffic(sync_.reduce, over_.reduced), sum, ends,
                         passing_use(ends));
  }

 private:
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
  Cover cover(PassPart part, const ExchangeTimes& exchanges, Traffic traffic,
              const SyncLinks& over) const {
    const bool some = traffic.time > Seconds(0);
    const double contending = some ? traffic.contending / traffic.time : 0.0;
    const double slowdown = stack_.overlap_slowdown * contending;
    const Seconds all = whole(part);
    const Seconds copies = part_of(work_.copies, part);
    const Cover busy =
        cover_of(all - copies, exchanges, slowdown, data_traffic(traffic, over), links_, work_.use);
    if (copies <= Seconds(0)) return busy;
    // A copy goes on while the pass is slowed. While the pass waits for the rest of the copy, the
    // links are free.
    const Seconds done = (all - copies) * busy.rate;
    const Seconds lost = done * busy.lost;
    const Seconds beside = done + std::max(Seconds(0), copies - lost);
    return {beside / all, std::max(Seconds(0), lost - copies) / beside};
  }
  static DataTraffic data_traffic(Traffic traffic, const SyncLinks& over) {
    if (traffic.time <= Seconds(0)) {
      return {{*over.most, ring_use(*over.most)}, {*over.leaving, ring_use(*over.leaving)}};
    }
    const auto use = [&](const GroupLinks& group, Seconds free, Seconds of) {
      return LinksInUse{
          group, mean_use(group, free / traffic.time, traffic.crossing / of, traffic.pattern)};
    };
    const LinksInUse all = use(*over.most, traffic.free, traffic.time);
    const Seconds leaving = traffic.time - traffic.inside;
    if (leaving <= Seconds(0)) return {all, {*over.leaving, all.use}};
    // While messages move inside domains, the links between these are free.
    const Seconds free = traffic.free - traffic.inside_free + traffic.inside;
    return {all, use(*over.leaving, free, leaving)};
  }
  // What sends meet of `traffic`, which goes on at `rate` beside the passes.
  BesideSends beside_sends(Traffic traffic, const SyncLinks& over, double rate) const {
    const GroupLinks& pipeline = links_.pipeline;
    return {traffic.time / rate,
            stretched_beside(data_traffic(traffic, over), pipeline, passing_use(pipeline))};
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
    BesideSends beside = beside_sends(sync_.reduce, over_.reduced, cover.rate);
    const Seconds send = 1.0 / shape_.stages * work_.around;
    constexpr Seconds kAlways(1e30);
    if (beside.time >= shape_.chunks * beside.stretch * send) beside.time = kAlways;
    return beside;
  }
  Cover forward_cover() const {
    return cover(&PassTimes::forward, work_.forward, sync_.gather, over_.gathered);
  }
  Cover whole_cover() const {
    ExchangeTimes exchanges = work_.backward;  // a ring has nothing in weight gradients
    exchanges.tensor += work_.weight.tensor;
    exchanges.context += work_.weight.context;
    exchanges.expert += work_.weight.expert;
    const bool mostly_reduces = sync_.reduce.time >= sync_.gather.time;
    SyncLinks over = mostly_reduces ? over_.reduced : over_.gathered;
    if (over.leaving->domains == 1) {
      over.leaving = (mostly_reduces ? over_.gathered : over_.reduced).leaving;
    }
    return cover(nullptr, exchanges, sync_.gather + sync_.reduce, over);
  }
  Cover reduction_cover() const {
    if (!split_) return whole_cover();
    return cover(&PassTimes::weight_gradient, work_.weight, sync_.reduce, over_.reduced);
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

  // Where micro-batches go both ways: stages to the nearer end of the pipeline, and to its middle.
  int from_end() const { return std::min(work_.stage, shape_.stages - 1 - work_.stage); }
  int from_middle() const { return shape_.stages / 2 - 1 - from_end(); }
  // The first micro-batch of the near copy comes through from_end() stages; that of the far copy
  // comes 2·from_middle() forward passes later.
  void pass_both_ways(GathersAhead& gathers, double rate) const {
    const Seconds forward = work_.layers.forward;
    gathers.other_work(from_end() * forward);
    for (const LayerCopy which : {LayerCopy::near, LayerCopy::far}) {
      UnitSequence units = units_.copy(&PassTimes::forward, kGather, rate, which);
      units.first.gather = units.last.gather = Seconds(0);
      gathers.pass(units);
      gathers.other_work(2.0 * from_middle() * forward);
    }
  }

  Seconds gathered_first() const {
    const Seconds latency = each_.bucket.gather.time;
    Seconds first;
    if (apart_.embedding && stage_.embedding) first += each_.embedding.gather.time + latency;
    if (apart_.head && stage_.head) first += each_.head.gather.time + latency;
    return first;
  }

  // Reductions left at the end. After the far copy's last gradients, the near copy still has passes
  // up to its own last gradients, beside which the far copy's are reduced.
  Seconds left_of_both_ways(Cover cover) const {
    const PassPart part = from_end() == 0 ? nullptr : &PassTimes::weight_gradient;
    const Seconds left =
        left_of_reductions(backwards(units_.copy(part, kReduce, cover.rate, LayerCopy::far)));
    const Seconds input = work_.layers.input_gradient;
    const int inputs =
        from_end() == 0 ? from_middle() + 1 : std::max(0, from_middle() - (from_end() - 1));
    const Seconds between = from_middle() * work_.layers.weight_gradient + inputs * input;
    const UnitSequence near =
        units_.copy(&PassTimes::weight_gradient, kReduce, cover.rate, LayerCopy::near);
    return cover.rate * left_of_reductions(backwards(near), std::max(Seconds(0), left - between));
  }

  // The last gradients' reductions that are left behind the last pass.
  Seconds left_at_end(Cover cover) const {
    if (shape_.route == Route::both_ways) {
      return std::max(Seconds(0), left_of_both_ways(cover) - begun_later());
    }
    const Seconds between = between_chunks();
    const PassPart part = split_ ? &PassTimes::weight_gradient : nullptr;
    UnitSequence units = backwards(units_.sequence(part, kReduce, cover.rate));
    Seconds left;
    for (std::size_t i = units_.runs().size(); i-- > 0;) {
      const int first = units_.runs()[i].first;
      units_.take_chunk(first, PassWay::backward, units);
      const UnitSequence chunk =
          units_.in_buckets(first, PassWay::backward, units, kReduce, cover.rate);
      bool settled = false;  // further chunks of the run leave as much as they find
      for (int passed = 0; passed < units_.runs()[i].size && !settled; ++passed) {
        const Seconds found = left;
        const bool is_last = passed == 0 && i + 1 == units_.runs().size();
        if (!is_last) left = std::max(Seconds(0), left - between);
        left = left_of_reductions(chunk, left);
        settled = left == found;
      }
    }
    return std::max(Seconds(0), left * cover.rate - begun_later());
  }

  // Passes at the end of a stage's list may follow each other with nothing between, so that the
  // reductions that each leaves add up: weight-gradient passes that the schedule puts off; on a
  // loop with several chunks, those of the micro-batches in flight behind the last forward pass.
  // `waits`: of units for the reductions of others, in a micro-batch's passes.
  Seconds left_of_passes_at_end(Cover cover, Seconds waits) const {
    if (most_are_split()) {
      const Seconds pass = whole(&PassTimes::weight_gradient) * cover.rate + waits;
      const Seconds each = sync_.reduce.time - pass;
      return (work_.passes_at_end - 1) * std::max(Seconds(0), each) / shape_.chunks;
    }
    if (shape_.route != Route::loop || shape_.chunks == 1) return Seconds(0);
    const int group = std::min(shape_.stages, plan_.microbatches);
    Seconds left = left_of_one(shape_.chunks - 1, cover) + (group - 1) * left_of_one(0, cover);
    if (shape_.chunks > 2) left += (shape_.chunks - 2.0) * group * left_of_one(1, cover);
    return left;
  }
  // Of a backward pass through a chunk, by the time that the next one begins.
  Seconds left_of_one(int chunk, Cover cover) const {
    UnitSequence units = backwards(units_.sequence(nullptr, kReduce, cover.rate));
    units_.take_chunk(chunk, PassWay::backward, units);
    Seconds more;
    units.for_each([&](const PassUnit& unit, int n) { more += n * (unit.reduce - unit.work); });
    const ShownInPass shown = shown_in_pass(units);
    return cover.rate * std::max(Seconds(0), more - (shown.all - shown.at_ends));
  }

  // Where units wait for the reductions of the units two before them, what the last pass leaves.
  // That of the embedding has no weight-gradient half: where backward passes are split, its
  // gradient is complete, and reduced, before the layers' are.
  Seconds left_of_last_pass(Cover cover) const {
    const bool both_ways = shape_.route == Route::both_ways;
    const PassPart part = split_ || both_ways ? &PassTimes::weight_gradient : nullptr;
    UnitSequence units =
        backwards(both_ways ? units_.copy(part, kReduce, cover.rate, LayerCopy::near)
                            : units_.sequence(part, kReduce, cover.rate));
    if (!both_ways) units_.take_chunk(0, PassWay::backward, units);
    if (part != nullptr) units.has_last = false;
    return std::max(Seconds(0), shown_in_pass(units).at_ends * cover.rate - begun_later());
  }

  // Without a pipeline every schedule is the same: one chunk, and nothing is gained by splitting.
  static PipelineShape shape_of(const Plan& plan) {
    PipelineShape shape = pipeline_shape(plan);
    if (shape.stages == 1) shape.chunks = 1;
    return shape;
  }

  Seconds whole(PassPart part) const {
    return part_of(work_.embedding, part) + part_of(work_.layers, part) + part_of(work_.head, part);
  }

  // `all`: what all chunks of the stage show; `shown(chunk)`: one.
  template <typename Shown>
  void note_chunks_with_ends(DataParallelCost& cost, PassPart part, Seconds all,
                             Shown shown) const {
    const bool in_chunks = shape_.chunks > 1 && shape_.route != Route::both_ways;
    if (!in_chunks) return;
    const Seconds mean = 1.0 / shape_.chunks * all;
    if (stage_.embedding) {  // in a V the head is in the other chunk, which has as much less
      cost.more_with_embedding.*part += shown(0) - mean;
    } else if (stage_.head) {
      cost.more_with_head.*part += shown(shape_.chunks - 1) - mean;
    }
  }

  void add(DataParallelCost& cost, PassPart part, UnitMoves moves, const Cover& cover,
           PassWay way) const {
    const Traffic all =
        share_met(plan_) * (moves.gathers * sync_.gather + moves.reductions * sync_.reduce);
    ShownInPass seen{all.time, Seconds(0)};
    if (plan_.overlap.data_parallel) {
      seen = units_.shown(part, moves, cover.rate, way);
      seen.all *= cover.rate;
      const PassPart of = part == nullptr ? &PassTimes::input_gradient : part;
      note_chunks_with_ends(cost, of, seen.all, [&](int chunk) {
        return cover.rate * units_.shown_in_chunk(part, moves, cover.rate, way, chunk).all;
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
  const Stack& stack_;
  const StageParameters& stage_;
  const StageWork& work_;
  PipelineShape shape_;
  bool split_;
  EndsApart apart_;  // the gathers of these ends come first, not in the order of the passes
  StageSync each_;
  SyncTimes sync_;  // of all
  SyncGroups over_;
  StageUnits units_;
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
