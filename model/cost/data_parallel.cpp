#include "model/cost/data_parallel.h"

#include <algorithm>

#include "model/workload/optimizer_flop.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

ShardDivisors divisors(int zero_stage, double ranks) {
  ShardDivisors out;
  if (zero_stage >= 1) out.optimizer = ranks;
  if (zero_stage >= 2) out.gradients = ranks;
  if (zero_stage >= 3) out.parameters = ranks;
  return out;
}

// One class of parameters (dense or expert) and the groups that reduce and shard it.
struct ParameterClass {
  double parameters = 0;
  const GroupLinks* reduce = nullptr;   // all ranks that hold a copy
  const GroupLinks* shard = nullptr;    // those that share one copy of the states
  const GroupLinks* replica = nullptr;  // across sharding groups; null: one group
};

struct Classes {
  ParameterClass dense, expert;
};

Classes classes(const PlanLinks& links, const StageParameters& stage) {
  return {{stage.dense, &links.dense_gradient, &links.dense_shard, &links.dense_replica},
          {stage.experts, &links.expert_data, &links.expert_data, nullptr}};
}

// A communication, and the part of it that takes multiprocessors and memory from compute beside it:
// the bytes at the pace of the links inside a node. While a slower network is waited for, compute
// has the device.
struct Traffic {
  Seconds time;
  Seconds contending;
};

Traffic operator+(Traffic a, Traffic b) { return {a.time + b.time, a.contending + b.contending}; }
Traffic operator*(double share, Traffic all) { return {share * all.time, share * all.contending}; }

struct SyncTimes {
  Traffic gather;  // parameters, once
  Traffic reduce;  // gradients, once
};

Traffic traffic(CollectiveOperation operation, const GroupLinks& group, Bytes message, int pieces,
                const PlanLinks& links) {
  const Seconds time = pieces * collective_time(operation, group, message, links);
  const double pace =
      group.domains > 1 ? std::min(1.0, group.ranks_per_domain * group.across / group.inside) : 1.0;
  return {time, time * pace};
}

// Reduction of gradients and gathering of parameters, once each. `pieces` messages (a layer each
// under ZeRO-3) share the bytes.
SyncTimes sync_times(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                     const ParameterClass& group, int pieces) {
  if (group.parameters <= 0) return {};
  const Training& training = job.job.training;
  const Bytes gradients(group.parameters * training.stack.reduction_bytes / pieces);
  const Bytes weights(group.parameters * training.precision.weight_bytes / pieces);
  if (plan.zero_stage == 0) {
    return {{}, traffic(all_reduce, *group.reduce, gradients, pieces, links)};
  }
  SyncTimes times{traffic(all_gather, *group.shard, weights, pieces, links),
                  traffic(reduce_scatter, *group.shard, gradients, pieces, links)};
  if (group.replica != nullptr) {
    const Bytes shard = gradients / group.shard->size;
    times.reduce = times.reduce + traffic(all_reduce, *group.replica, shard, pieces, links);
  }
  return times;
}

SyncTimes operator+(SyncTimes a, SyncTimes b) { return {a.gather + b.gather, a.reduce + b.reduce}; }

SyncTimes stage_sync(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                     const StageParameters& stage) {
  const Classes both = classes(links, stage);
  const int pieces = plan.zero_stage >= 3 ? std::max(stage.layers, 1) : 1;
  return sync_times(job, plan, links, both.dense, pieces) +
         sync_times(job, plan, links, both.expert, pieces);
}

// The share of a stage's parameters that is reduced last and gathered first, with nothing to hide
// behind: one layer, and the embedding where the stage has it.
double share_of_last_piece(const PreparedJob& job, const StageParameters& stage) {
  const double all = stage.dense + stage.experts;
  const double ends = std::max(0.0, all - stage.layers * stage.largest_layer);
  const bool has_both = ends > 1.5 * job.end_parameters.embedding;
  const double last = stage.largest_layer + (has_both ? ends / 2 : ends);
  return all > 0 ? std::min(1.0, last / all) : 1;
}

// Exposed part of a communication beside `cover` of compute: what does not fit, what the overlap
// slows, and its last piece.
Seconds exposed(Traffic traffic, Seconds cover, double last_piece, double slowdown, bool overlap) {
  const Seconds time = traffic.time;
  if (!overlap || time <= Seconds(0)) return time;
  const Seconds hidden = std::min(time * (1 - last_piece), cover);
  return time - hidden + hidden * (slowdown * (traffic.contending / time));
}

// Gradients can only be kept sharded (stage 2 and up) when every micro-batch's are reduced at once.
bool reduces_every_microbatch(const Plan& plan) { return plan.zero_stage >= 2; }

// Of a stage's layers, those that one micro-batch meets there: under Route::both_ways one of the
// two copies.
double share_met(const Plan& plan) { return plan.schedule->route == Route::both_ways ? 0.5 : 1.0; }

// One rank of each of two stages that are far from each other.
GroupLinks pair_of_stages(const PlanLinks& links) {
  GroupLinks pair = links.pipeline;
  pair.size = 2;
  pair.ranks_per_domain = pair.domains > 1 ? 1 : 2;
  pair.domains = std::min(pair.domains, 2);
  return pair;
}

// The other copy of a stage's layers is on the stage that mirrors it: gradients (what is left of
// them behind ZeRO's reduction) are added up between the two.
Seconds mirror_time(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                    const StageParameters& stage) {
  if (plan.schedule->route != Route::both_ways) return Seconds(0);
  const double kept = plan.zero_stage == 0 ? stage.dense + stage.experts
                                           : stage.dense / dense_divisors(plan).optimizer +
                                                 stage.experts / expert_divisors(plan).optimizer;
  const Bytes gradients(kept * job.job.training.stack.reduction_bytes);
  return collective_time(all_reduce, pair_of_stages(links), gradients, links);
}

// Both ends of a pipeline hold the tied embedding; their gradients are added up.
Seconds tied_embedding_time(const PreparedJob& job, const PlanLinks& links,
                            const StageParameters& stage) {
  if (stage.tied_embedding <= 0) return Seconds(0);
  const Bytes gradients(stage.tied_embedding * job.job.training.stack.reduction_bytes);
  return collective_time(all_reduce, pair_of_stages(links), gradients, links);
}

// Traffic of the step, a parameter: the norm reads the gradient once more than the update; clipping
// is folded into the update.
double step_bytes(const Training& training) {
  const double gradient = training.stack.gradient_bytes;
  return gradient + update_bytes(training.optimizer, training.precision, gradient);
}

// Newton–Schulz iterations on whole matrices, shared out among the ranks that hold a part of them
// (Liu et al. 2025, Distributed Muon); the gathering of the matrices is not counted.
Seconds orthogonalisation_time(const PreparedJob& job, const Plan& plan,
                               const StageParameters& stage) {
  const Training& training = job.job.training;
  if (training.optimizer.orthogonalisation_steps == 0) return Seconds(0);
  const double dense_ranks = plan.tensor_parallel * dense_divisors(plan).optimizer;
  const double expert_ranks =
      plan.expert_parallel * plan.expert_tensor_parallel * expert_divisors(plan).optimizer;
  Flops flop;
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    const int layers = stage.kinds[static_cast<std::size_t>(kind)];
    const UpdateFlop each = update_flop(training.optimizer, job.job.model, layer_kind_at(kind));
    flop += Flops(layers * (each.dense / dense_ranks + each.experts / expert_ranks));
  }
  const Device& device = job.job.cluster.device;
  return flop / (device.rates.of(training.precision.head_gemm).per_multiprocessor *
                 (device.multiprocessors * device.rates.sustained_clock));
}

Seconds host_update_time(const PreparedJob& job, const Plan& plan, double parameters) {
  const Cluster& cluster = job.job.cluster;
  const Training& training = job.job.training;
  const double devices = cluster.devices_per_node;
  const Bytes crossing(parameters *
                       (training.stack.gradient_bytes + training.precision.weight_bytes));
  const Bytes states(parameters * step_bytes(training));
  const BytesPerSecond memory =
      plan.offload.optimizer == OffloadTarget::nvme
          ? std::min(cluster.nvme_bandwidth, cluster.host_memory_bandwidth)
          : cluster.host_memory_bandwidth;
  return crossing / cluster.device.host_bandwidth + states / (memory / devices);
}

}  // namespace

ShardDivisors dense_divisors(const Plan& plan) {
  return divisors(plan.zero_stage, plan.sharding_group);
}

ShardDivisors expert_divisors(const Plan& plan) {
  return divisors(plan.zero_stage, plan.expert_data_parallel);
}

DataParallelCost data_parallel_cost(const PreparedJob& job, const Plan& plan,
                                    const PlanLinks& links, const StageParameters& stage,
                                    PassTimes compute) {
  const Stack& stack = job.job.training.stack;
  const SyncTimes sync = stage_sync(job, plan, links, stage);
  // Gradients are complete, and reduced, as weight-gradient passes go on; weights are gathered for
  // the other half of a backward pass that is split.
  const bool split = plan.schedule->splits_backward;
  const Seconds reducing = split ? compute.weight_gradient : compute.backward();
  const double last_piece = share_of_last_piece(job, stage);
  const double met = share_met(plan);
  const auto left = [&](Traffic traffic, Seconds cover) {
    return exposed(traffic, cover, last_piece, stack.overlap_slowdown, plan.overlap.data_parallel);
  };
  DataParallelCost cost;
  cost.step = tied_embedding_time(job, links, stage) + mirror_time(job, plan, links, stage);
  if (plan.zero_stage >= 3) {
    cost.microbatch_forward = left(met * sync.gather, compute.forward);
    cost.microbatch_backward =
        split ? left(met * sync.gather, compute.input_gradient) + left(met * sync.reduce, reducing)
              : left(met * (sync.gather + sync.reduce), reducing);
    return cost;
  }
  cost.step += stack.exposed_gathers ? sync.gather.time : left(sync.gather, compute.forward);
  if (reduces_every_microbatch(plan)) {
    cost.microbatch_backward = left(met * sync.reduce, reducing);
  } else {
    cost.step += left(sync.reduce, reducing);
  }
  return cost;
}

Seconds data_parallel_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                              const StageParameters& stage) {
  const SyncTimes sync = stage_sync(job, plan, links, stage);
  const double times = plan.microbatches * share_met(plan);
  if (plan.zero_stage >= 3) return (2 * sync.gather.time + sync.reduce.time) * times;
  return sync.gather.time + sync.reduce.time * (reduces_every_microbatch(plan) ? times : 1.0);
}

Seconds optimizer_time(const PreparedJob& job, const Plan& plan, const StageParameters& stage) {
  const double parameters = stage.dense / dense_divisors(plan).optimizer +
                            stage.experts / expert_divisors(plan).optimizer;
  Seconds time;
  if (plan.offload.optimizer != OffloadTarget::none) {
    time = host_update_time(job, plan, parameters);
  } else {
    const Device& device = job.job.cluster.device;
    time = Bytes(parameters * step_bytes(job.job.training)) /
           (device.memory_bandwidth * device.rates.memory);
  }
  time += orthogonalisation_time(job, plan, stage);
  if (plan.zero_stage == 1) {
    time += job.job.training.stack.sharded_update_per_rank * plan.sharding_group;
  }
  return time;
}

}  // namespace trainyard
