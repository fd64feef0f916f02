#include "model/cost/memory/offload.h"

#include <algorithm>
#include <cmath>

#include "model/cost/sharding/data_parallel.h"

namespace trainyard {
namespace {

bool away(OffloadTarget target) { return target != OffloadTarget::none; }

// Of the weights that a pass reads: the copy kept for it, else the optimizer's own.
OffloadTarget weights_target(const Training& training, const Plan& plan) {
  return keeps_weights(training, plan) ? plan.offload.parameters : plan.offload.optimizer;
}

// `bytes` of each parameter of a stage, which ZeRO divides by `dense` and `experts`.
UnitCopies unit_copies(const StageParameters& stage, double bytes, double dense, double experts,
                       BytesPerSecond bandwidth) {
  const double layers = stage.dense - stage.embedding_matrix - stage.head_matrix;
  return {Bytes(stage.embedding_matrix / dense * bytes) / bandwidth,
          Bytes((layers / dense + stage.experts / experts) * bytes) / bandwidth,
          Bytes(stage.head_matrix / dense * bytes) / bandwidth};
}

UnitCopies weight_copies(const PreparedJob& job, const Plan& plan, const StageParameters& stage) {
  const Training& training = job.job.training;
  if (!weights_away(training, plan)) return {};
  const PrecisionRecipe& precision = training.precision;
  const double bytes =
      keeps_weights(training, plan) ? precision.weight_bytes : precision.master_weight_bytes;
  return unit_copies(stage, bytes, dense_divisors(plan).parameters,
                     expert_divisors(plan).parameters,
                     bandwidth_to(job.job.cluster, weights_target(training, plan)));
}

UnitCopies gradient_copies(const PreparedJob& job, const Plan& plan, const StageParameters& stage) {
  if (!gradients_away(plan)) return {};
  return unit_copies(stage, kept_gradient_bytes(job.job.training), dense_divisors(plan).gradients,
                     expert_divisors(plan).gradients,
                     bandwidth_to(job.job.cluster, plan.offload.gradients));
}

Seconds longer(Seconds copy, Seconds pass) { return std::max(Seconds(0), copy - pass); }

// Of a stage whose forward and backward passes take turns, beside its layers alone: two layers'
// activations leave, and the first one comes back, beside what follows and comes before. Where
// backward follows forward those are the ends, and what they do not cover shows.
struct ShownInTurn {
  Seconds away, back;
};
// Where the activations of some layers leave, one of two things happens to a chunk. All of its
// layers' do, in turn. Or the first ones' do: they go beside all layers behind the first, up to the
// last one, and come back beside as many (model/program/departures.h).
ShownInTurn shown_of_some(const OffloadCopies& copies, double share, const PassTimes& layers) {
  const double visited = share * copies.stage_layers;
  const Seconds each = copies.activations / copies.leaving;
  const Seconds gradients =
      copies.halves_apart ? Seconds(0) : share * copies.beside.weight_gradient;
  const Seconds states =
      1 / visited * (share * (copies.beside.input_gradient - copies.activations) + gradients);
  const Seconds forward = layers.forward / visited;
  const Seconds backward =
      (copies.halves_apart ? layers.input_gradient : layers.backward()) / visited;
  double whole_chunks = std::floor(copies.leaving / copies.layers);
  double some = copies.leaving - whole_chunks * copies.layers;
  if (some >= copies.layers - 1) {  // one layer that stays changes nothing
    some = 0;
    ++whole_chunks;
  }
  const double between = std::max(0.0, copies.layers - 2);
  const Seconds away =
      whole_chunks * between * longer(each, forward) + longer(some * each, between * forward);
  const Seconds back = whole_chunks * (copies.layers - 1) * longer(each + states, backward) +
                       longer(some * each + between * states, between * backward);
  return {share * away, share * back};
}

ShownInTurn shown_in_turn(const OffloadCopies& copies, double share, const PassTimes& layers,
                          Seconds ends) {
  if (copies.leaving < copies.stage_layers) return shown_of_some(copies, share, layers);
  const Seconds gone = share * copies.activations;
  const Seconds gradients =
      copies.halves_apart ? Seconds(0) : share * copies.beside.weight_gradient;
  const Seconds back = share * copies.beside.input_gradient + gradients;
  const Seconds cover = copies.halves_apart ? layers.input_gradient : layers.backward();
  ShownInTurn shown;
  shown.away = std::max(0.0, copies.layers - 2) / copies.layers * longer(gone, layers.forward);
  shown.back = (copies.layers - 1) / copies.layers * longer(back, cover);
  if (copies.turns) {
    const double each = 1 / (copies.layers * copies.chunks);
    const Seconds one = each * gone;
    shown.back += longer(std::max(2 * one, 3 * one - each * layers.forward), ends);
  }
  return shown;
}

// What shows of activations' copies together with the others of a pass.
PassTimes shown_with_activations(const OffloadCopies& copies, double share, const PassTimes& passes,
                                 const EndPasses& ends) {
  const PassTimes& beside = copies.beside;
  PassTimes exposed;
  exposed.forward = longer(share * copies.weights, passes.forward);
  exposed.input_gradient = longer(share * copies.weights, passes.input_gradient);
  exposed.weight_gradient = longer(share * beside.weight_gradient, passes.weight_gradient);
  const Seconds gone = share * copies.activations;
  if (copies.in_a_row && copies.leaving >= copies.stage_layers - 1) {
    const Seconds gradients = copies.halves_apart ? Seconds(0) : share * beside.weight_gradient;
    const Seconds cover = copies.halves_apart ? passes.input_gradient : passes.backward();
    const Seconds back = longer(share * beside.input_gradient + gradients, cover);
    exposed.forward = std::max(exposed.forward, longer(gone, passes.forward));
    exposed.input_gradient = std::max(exposed.input_gradient, back - exposed.weight_gradient);
    return exposed;
  }
  const PassTimes& e = ends.embedding;
  const PassTimes& h = ends.head;
  const PassTimes layers{passes.forward - e.forward - h.forward,
                         passes.input_gradient - e.input_gradient - h.input_gradient,
                         passes.weight_gradient - e.weight_gradient - h.weight_gradient};
  const ShownInTurn shown = shown_in_turn(copies, share, layers, e.total() + h.total());
  exposed.input_gradient = std::max(exposed.input_gradient, shown.back - exposed.weight_gradient);
  const Seconds backward = exposed.input_gradient + exposed.weight_gradient;
  // Each way takes as long as it takes.
  const Seconds in = share * (2 * copies.weights + copies.activations + beside.weight_gradient);
  exposed.forward =
      std::max({exposed.forward, shown.away, longer(in, passes.total()) - backward,
                longer(gone + share * beside.weight_gradient, passes.total()) - backward});
  return exposed;
}

// Weights and gradients that come for every unit while the one before it is at work.
class StateCopies {
 public:
  StateCopies(const OffloadCopies& copies, double share, const PassTimes& passes,
              const EndPasses& ends)
      : copies_(copies), share_(share), passes_(passes), ends_(ends) {
    if (copies.ends_meet && !copies.gradient_parts) going_ = share * copies.gradients.embedding;
  }

  PassTimes shown() {
    before_first_ = Seconds(0);
    const UnitCopies& weights = copies_.by_unit;
    const UnitCopies& gradients = copies_.gradients;
    PassTimes shown;
    const Pass forward = pass(&PassTimes::forward, weights);
    if (copies_.halves_apart) {
      const Pass input = back(&PassTimes::input_gradient, with_activations(weights));
      const Pass weight = back(&PassTimes::weight_gradient, gradients);
      shown.forward = shown_in(forward, copies_.in_a_row ? forward : weight);
      shown.input_gradient = shown_in(input, forward);
      const Seconds on_the_way = before_first_;  // weight gradients are on no micro-batch's way
      shown.weight_gradient = shown_in(weight, input) + gone_late(weight);
      before_first_ = on_the_way;
      return shown;
    }
    const UnitCopies both =
        with_activations({weights.embedding + gradients.embedding,
                          weights.layers + gradients.layers, weights.head + gradients.head});
    const Pass backward = back(nullptr, both);
    shown.forward = shown_in(forward, copies_.in_a_row ? forward : backward);
    shown.input_gradient =
        shown_in(backward, copies_.in_a_row ? backward : forward, going_) + gone_late(backward);
    return shown;
  }
  // Of what was shown.
  Seconds before_first() const { return before_first_; }

 private:
  struct Unit {
    Seconds copy, work;
    bool exists = false;
  };
  // In the order of a pass.
  struct Pass {
    Unit first, layer, last;
    double layers = 1;
    Seconds copies() const { return first.copy + layers * layer.copy + last.copy; }
    Seconds work() const { return first.work + layers * layer.work + last.work; }
    const Unit& begin() const { return first.exists ? first : layer; }
    const Unit& end() const { return last.exists ? last : layer; }
  };

  UnitCopies with_activations(UnitCopies units) const {
    units.layers += copies_.activations;
    return units;
  }

  // Of both halves of a backward pass without `part`.
  Pass pass(Seconds PassTimes::*part, const UnitCopies& copies) const {
    const auto of = [part](const PassTimes& times) {
      return part == nullptr ? times.backward() : times.*part;
    };
    Pass pass;
    pass.layers = std::max(1, copies_.stage_layers);
    const Seconds e = of(ends_.embedding);
    const Seconds h = of(ends_.head);
    pass.first = {share_ * copies.embedding, e, e > Seconds(0) || copies.embedding > Seconds(0)};
    pass.last = {share_ * copies.head, h, h > Seconds(0) || copies.head > Seconds(0)};
    pass.layer = {share_ / pass.layers * copies.layers, (of(passes_) - e - h) / pass.layers, true};
    return pass;
  }

  // The other way round: the head is the first.
  Pass back(Seconds PassTimes::*part, UnitCopies copies) const {
    if (copies_.ends_meet) std::swap(copies.embedding, copies.head);
    Pass back = pass(part, copies);
    std::swap(back.first, back.last);
    return back;
  }

  // Nothing keeps the copies for the first unit of a pass back but those for the last of the pass
  // before.
  // `held_up`: by what must have gone before.
  Seconds shown_in(const Pass& pass, const Pass& before, Seconds held_up = Seconds(0)) {
    if (pass.copies() <= Seconds(0)) return Seconds(0);
    const Unit& previous = before.end();
    const Seconds ahead = before.copies() <= Seconds(0)
                              ? before.work()
                              : previous.work + longer(before.layer.work, previous.copy);
    const Seconds first = longer(pass.begin().copy + held_up, ahead);
    before_first_ += first;
    const Seconds more = copies_.parts ? pass.layer.work : Seconds(0);
    Seconds shown = first;
    if (pass.first.exists) shown += longer(pass.layer.copy, pass.first.work + more);
    shown += (pass.layers - 1) * longer(pass.layer.copy, pass.layer.work);
    if (pass.last.exists) shown += longer(pass.last.copy, pass.layer.work + more);
    return shown;
  }

  // The gradients of the head on their way, until which the second unit behind it waits; and at the
  // end of a pass that waits for all.
  Seconds gone_late(const Pass& backward) const {
    const double each = share_ / backward.layers;
    const UnitCopies& gradients = copies_.gradients;
    Seconds late =
        longer(share_ * gradients.head, longer(backward.layer.copy, backward.first.work) +
                                            std::max(backward.layer.work, backward.layer.copy));
    if (copies_.sums_awaited) {
      late += backward.last.exists ? share_ * gradients.embedding : each * gradients.layers;
    }
    return late;
  }

  const OffloadCopies& copies_;
  double share_;
  const PassTimes& passes_;
  const EndPasses& ends_;
  Seconds before_first_;
  Seconds going_;  // a matrix of both ends, with the last unit of a backward pass
};

struct ClassParameters {
  double parameters = 0;
  ShardDivisors by;
};

Seconds gradient_crossing(const PreparedJob& job, const Plan& plan, const ClassParameters& held) {
  const bool on_host = away(plan.offload.optimizer);
  if (gradients_away(plan) == on_host) return Seconds(0);
  const Bytes part(held.parameters / held.by.optimizer * kept_gradient_bytes(job.job.training));
  if (on_host) return part / job.job.cluster.device.host_bandwidth;
  return 2 * part / bandwidth_to(job.job.cluster, plan.offload.gradients);
}

Seconds weight_crossing(const PreparedJob& job, const Plan& plan, const ClassParameters& held) {
  const Training& training = job.job.training;
  const bool on_host = away(plan.offload.optimizer);
  const bool elsewhere = weights_away(training, plan);
  if (!keeps_weights(training, plan) || (!elsewhere && !on_host)) return Seconds(0);
  const Bytes whole(held.parameters * training.precision.weight_bytes);
  const Bytes part = whole / held.by.optimizer;
  if (!elsewhere) return part / job.job.cluster.device.host_bandwidth;
  const BytesPerSecond bandwidth = bandwidth_to(job.job.cluster, plan.offload.parameters);
  if (held.by.optimizer > held.by.parameters) return (part + whole) / bandwidth;
  return on_host ? Seconds(0) : 2 * part / bandwidth;
}

// Parameters of the stage whose gradients are added up over the replicas behind the passes that
// made them: all, or the ends', which later passes add to.
double summed_late(const Plan& plan, const StageParameters& stage) {
  if (plan.held_zero_stage() >= 2) return 0;
  if (!plan.overlap.data_parallel || plan.no_sync()) {
    const double dense = plan.data_parallel * plan.context_parallel > 1 ? stage.dense : 0;
    return dense + (plan.expert_data_parallel > 1 ? stage.experts : 0);
  }
  if (stage.tied_embedding > 0) return stage.embedding_matrix + stage.head_matrix;
  return splits_backward(*plan.schedule, plan.pipeline_parallel) ? stage.embedding_matrix : 0;
}

// Gradients that have gone by the time that they are added up come for it and go again.
Seconds crossing_for_sums(const PreparedJob& job, const Plan& plan, const StageParameters& stage) {
  if (!gradients_away(plan)) return Seconds(0);
  const ShardDivisors dense = dense_divisors(plan);
  const ShardDivisors expert = expert_divisors(plan);
  const bool mirrors = plan.schedule->route == Route::both_ways;
  double parameters = summed_late(plan, stage);
  if (mirrors) parameters += stage.dense / dense.gradients + stage.experts / expert.gradients;
  if (stage.tied_embedding > 0) parameters += stage.tied_embedding / dense.gradients;
  return 2 * Bytes(parameters * kept_gradient_bytes(job.job.training)) /
         bandwidth_to(job.job.cluster, plan.offload.gradients);
}

}  // namespace

BytesPerSecond bandwidth_to(const Cluster& cluster, OffloadTarget target) {
  const BytesPerSecond host = cluster.device.host_bandwidth;
  if (target != OffloadTarget::nvme) return host;
  return std::min(host, cluster.nvme_bandwidth / static_cast<double>(cluster.devices_per_node));
}

BytesPerSecond update_bandwidth(const Cluster& cluster, OffloadTarget optimizer) {
  const BytesPerSecond memory =
      optimizer == OffloadTarget::nvme
          ? std::min(cluster.nvme_bandwidth, cluster.host_memory_bandwidth)
          : cluster.host_memory_bandwidth;
  return memory / static_cast<double>(cluster.devices_per_node);
}

Bytes activations_sent_away(const Plan& plan, const StageCosts& costs, const StageParameters& stage,
                            Recompute recompute) {
  if (!away(plan.offload.activations)) return Bytes(0);
  return saved_by_stage(costs, stage, recompute) * offloaded_share(plan.offload, stage.layers);
}

OffloadCopies offload_copies(const PreparedJob& job, const Plan& plan, const StageParameters& stage,
                             Bytes activations) {
  OffloadCopies copies;
  copies.by_unit = weight_copies(job, plan, stage);
  copies.gradients = gradient_copies(job, plan, stage);
  if (job.job.model.tied_embeddings && stage.embedding && stage.head) {
    copies.ends_meet = plan.pipeline_parallel == 1;
    if (!copies.ends_meet) {
      copies.by_unit.head = copies.by_unit.embedding;
      copies.gradients.head = copies.gradients.embedding;
    }
  }
  copies.weights = copies.by_unit.total();
  copies.stage_layers = stage.layers;
  copies.parts = dense_divisors(plan).parameters > 1;
  copies.gradient_parts = dense_divisors(plan).gradients > 1;
  copies.sums_awaited =
      plan.held_zero_stage() >= 3 || (plan.held_zero_stage() == 2 && plan.pipeline_parallel == 1);
  if (away(plan.offload.activations)) {
    copies.leaving = offloaded_share(plan.offload, stage.layers) * stage.layers;
    copies.activations = activations / bandwidth_to(job.job.cluster, plan.offload.activations);
  }
  copies.beside.forward = std::max(copies.weights, copies.activations);
  copies.beside.input_gradient = copies.weights + copies.activations;
  copies.beside.weight_gradient = copies.gradients.total();
  const PipelineShape shape = pipeline_shape(plan);
  const int in_flight = plan.schedule->chunks_in_flight(shape, 0);
  copies.in_a_row = plan.microbatches > 1 && in_flight >= plan.microbatches * shape.chunks;
  // Both ways the halves of a few of the last backward passes only are apart, and a micro-batch
  // turns back behind passes of the other way.
  const bool both_ways = shape.route == Route::both_ways;
  copies.halves_apart = !both_ways && splits_backward(*plan.schedule, plan.pipeline_parallel);
  copies.chunks = shape.chunks;
  copies.layers = std::max(1.0, static_cast<double>(stage.layers) / chunks_held(shape));
  copies.turns = stage.head && !both_ways;
  return copies;
}

PassTimes exposed_copies(const OffloadCopies& copies, double share, const PassTimes& passes,
                         const EndPasses& ends) {
  PassTimes exposed;
  if (copies.by_unit.total() + copies.gradients.total() > Seconds(0)) {
    exposed = StateCopies(copies, share, passes, ends).shown();
  }
  if (copies.activations <= Seconds(0)) return exposed;
  const PassTimes whole = shown_with_activations(copies, share, passes, ends);
  exposed.forward = std::max(exposed.forward, whole.forward);
  exposed.input_gradient =
      std::max(exposed.input_gradient, whole.backward() - exposed.weight_gradient);
  return exposed;
}

Seconds copies_before_passes(const OffloadCopies& copies, double share, const PassTimes& passes,
                             const EndPasses& ends) {
  if (copies.by_unit.total() + copies.gradients.total() <= Seconds(0)) return Seconds(0);
  StateCopies states(copies, share, passes, ends);
  const PassTimes shown = states.shown();
  // While a pipeline drains, a stage waits for the next micro-batch's backward pass about as long
  // as a forward pass takes: what sums of gradients cross the link for longer than a pass is gone
  // then.
  const bool sums_alone = copies.gradients.total() > Seconds(0) && copies.activations <= Seconds(0);
  const Seconds in_drain =
      sums_alone && copies.chunks == 1 ? std::min(shown.backward(), passes.forward) : Seconds(0);
  return states.before_first() + in_drain;
}

Seconds copies_of_first_passes(const OffloadCopies& copies, const Plan& plan, int stage,
                               double share, const PassTimes& layers) {
  const PipelineShape shape = pipeline_shape(plan);
  if (copies.activations <= Seconds(0) || shape.stages == 1) return Seconds(0);
  if (shape.route == Route::loop) {
    // All passes show it already; or no forward passes are in a row where the network ends.
    if (copies.in_a_row || copies.halves_apart) return Seconds(0);
    const double row =
        (plan.schedule->chunks_in_flight(shape, shape.stages - 1) - 1.0) / shape.chunks;
    return row * longer(share * copies.activations, layers.forward);
  }
  const bool both_ways = shape.route == Route::both_ways;
  const int from_end = both_ways ? std::min(stage, shape.stages - 1 - stage) : stage;
  const int before = plan.schedule->chunks_in_flight(shape, stage) - (both_ways ? 1 : 0);
  // Of the micro-batch that comes back first, to its turn on the first stage of its way and back.
  const int forwards = layer_chunks(shape) - from_end;
  const Seconds backward = copies.halves_apart ? layers.input_gradient : layers.backward();
  const double chunk = 1.0 / shape.chunks;
  const Seconds gone = before * (share * chunk) * copies.activations;
  return longer(gone, chunk * (forwards * layers.forward + from_end * backward));
}

CopiesAtEnds copies_at_ends(const OffloadCopies& copies) {
  const double layers = std::max(1, copies.stage_layers);
  const auto first = [&](const UnitCopies& units) {
    return units.embedding > Seconds(0) ? units.embedding : units.layers / layers;
  };
  return {first(copies.by_unit), copies.sums_awaited ? Seconds(0) : first(copies.gradients)};
}

bool weights_away(const Training& training, const Plan& plan) {
  return away(weights_target(training, plan));
}

bool gradients_away(const Plan& plan) { return away(plan.offload.gradients); }

Seconds optimizer_crossing(const PreparedJob& job, const Plan& plan, const StageParameters& stage) {
  const ClassParameters dense{stage.dense, dense_divisors(plan)};
  const ClassParameters experts{stage.experts, expert_divisors(plan)};
  return gradient_crossing(job, plan, dense) + gradient_crossing(job, plan, experts) +
         weight_crossing(job, plan, dense) + weight_crossing(job, plan, experts) +
         crossing_for_sums(job, plan, stage);
}

}  // namespace trainyard
