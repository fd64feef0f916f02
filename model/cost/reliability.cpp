#include "model/cost/reliability.h"

#include <algorithm>
#include <cmath>

namespace trainyard {
namespace {

constexpr BytesPerSecond kStoreShare{1e9};  // of one node, see StorageTier
// Where the device does not state its link to the host: PCIe 4.0 x16 as attained; assumed.
constexpr BytesPerSecond kAssumedHostLink{25e9};

double root(double value) { return std::sqrt(value); }

int devices_per_replica(const Plan& plan) { return plan.devices() / plan.data_parallel; }

double nodes_per_replica(const Cluster& cluster, const Plan& plan) {
  const double devices = devices_per_replica(plan);
  return std::max(1.0, devices / cluster.devices_per_node);
}

BytesPerSecond nic_bandwidth(const Cluster& cluster) {
  if (cluster.inter.nics_per_node == 0) return cluster.host_memory_bandwidth;
  return cluster.inter.bandwidth * cluster.inter.nics_per_node * cluster.inter.efficiency;
}

// Bandwidth of one node to the tier or from it, with copies on so many peers.
BytesPerSecond node_bandwidth(const Cluster& cluster, TierKind kind, int peers) {
  const BytesPerSecond nics = nic_bandwidth(cluster);
  switch (kind) {
    case TierKind::memory:
      return peers > 0 ? nics / peers : cluster.host_memory_bandwidth;
    case TierKind::nvme:
      return peers > 0 ? std::min(cluster.nvme_bandwidth / (1 + peers), nics / peers)
                       : cluster.nvme_bandwidth;
    case TierKind::storage:
      break;
  }
  return nics;
}

BytesPerSecond attained(const std::optional<BytesPerSecond>& asked, BytesPerSecond tier_default,
                        BytesPerSecond at_most, double contention) {
  return std::min(at_most, asked.value_or(tier_default) * (1 - contention));
}

// A node is taken for dead when `misses` heartbeats have failed to come; the failure lies anywhere
// between two heartbeats. Nothing has to be detected where they were lost and no node is dead.
Seconds mean_detection(const Heartbeat& heartbeat, int nodes, Seconds mtbf) {
  const double dead = 1 - nodes * false_alarms_per_second(heartbeat) * mtbf.value();
  return dead * heartbeat.interval * (heartbeat.misses - 0.5);
}

// Training time that one checkpoint blocks. A synchronous one waits for all tiers to be written.
Seconds blocking_of(const PreparedJob& job, const Plan& plan, const Checkpointing& checkpointing,
                    Seconds copy) {
  const auto share = [&](const StorageTier& tier) {
    const TierCost cost = tier_cost(job, plan, checkpointing, tier);
    return cost.write / cost.every;
  };
  Seconds written;
  for (const StorageTier& tier : checkpointing.tiers) written += share(tier);
  if (checkpointing.tiers.empty()) written = share({});
  double bytes_share = 1;
  if (checkpointing.incremental) {
    const Incremental& incremental = *checkpointing.incremental;
    bytes_share = (1 + incremental.share * (incremental.full_every - 1)) / incremental.full_every;
  }
  written *= bytes_share;
  const bool waits = checkpointing.mode == CheckpointMode::synchronous;
  return waits ? written : copy + written * checkpointing.interference;
}

}  // namespace

double false_alarms_per_second(const Heartbeat& heartbeat) {
  return std::pow(heartbeat.loss, heartbeat.misses) * (1 - heartbeat.loss) /
         heartbeat.interval.value();
}

int parts_of(int nodes, int per_part) { return (nodes + per_part - 1) / std::max(1, per_part); }

Seconds young_interval(Seconds checkpoint, Seconds mtbf) {
  return Seconds(root(2 * checkpoint.value() * mtbf.value()));
}

Seconds daly_interval(Seconds checkpoint, Seconds mtbf) {
  if (checkpoint >= 2 * mtbf) return mtbf;
  const double ratio = checkpoint / (2 * mtbf);
  return young_interval(checkpoint, mtbf) * (1 + root(ratio) / 3 + ratio / 9) - checkpoint;
}

double goodput(const FailureCycle& cycle) {
  const Seconds attempt = cycle.interval + cycle.checkpoint;
  const Seconds wall =
      cycle.mtbf * std::exp(cycle.restart / cycle.mtbf) * std::expm1(attempt / cycle.mtbf);
  return cycle.interval / wall;
}

Seconds job_mtbf(const Reliability& reliability, const Cluster& cluster, int devices) {
  const int nodes = nodes_of(cluster, devices);
  double rate = devices / reliability.device_mtbf.value();
  if (reliability.racks) {
    rate += parts_of(nodes, reliability.racks->nodes) / reliability.racks->mtbf.value();
  }
  if (reliability.leaves) {
    rate += parts_of(nodes, cluster.inter.nodes_per_leaf) / reliability.leaves->mtbf.value();
  }
  rate += nodes * false_alarms_per_second(reliability.heartbeat);
  return Seconds(1 / rate);
}

int nodes_of(const Cluster& cluster, int devices) {
  return parts_of(devices, cluster.devices_per_node);
}

int spares_of(const Reliability& reliability, int nodes) {
  return reliability.spares.value_or(std::max(1, (nodes + 50) / 100));
}

Bytes checkpoint_bytes(const PreparedJob& job) {
  const Training& training = job.job.training;
  const double master = training.precision.master_weight_bytes;
  const bool has_copy = training.stack.keeps_weight_copy || master == 0;
  const double copy = has_copy ? training.precision.weight_bytes : 0;
  const Optimizer& optimizer = training.optimizer;
  return Bytes(job.parameters * (copy + master + optimizer.moment_bytes) +
               job.end_parameters.total() * optimizer.more_at_ends);
}

CheckpointCost checkpoint_cost(const PreparedJob& job, const Plan& plan,
                               const Checkpointing& checkpointing) {
  const Cluster& cluster = job.job.cluster;
  const double writers = checkpointing.sharded ? plan.devices() : devices_per_replica(plan);
  CheckpointCost cost;
  cost.bytes = checkpointing.bytes.value_or(checkpoint_bytes(job));
  const BytesPerSecond link = cluster.device.host_bandwidth;
  cost.copy = cost.bytes / writers / (link > BytesPerSecond(0) ? link : kAssumedHostLink);
  return cost;
}

TierCost tier_cost(const PreparedJob& job, const Plan& plan, const Checkpointing& checkpointing,
                   const StorageTier& tier) {
  const Cluster& cluster = job.job.cluster;
  const Bytes bytes = checkpoint_cost(job, plan, checkpointing).bytes;
  const double nodes = nodes_of(cluster, plan.devices());
  const double writers = checkpointing.sharded ? nodes : nodes_per_replica(cluster, plan);
  const bool store = tier.kind == TierKind::storage;
  const int peers = store ? 0 : tier.peers;
  const BytesPerSecond written = node_bandwidth(cluster, tier.kind, peers);
  const BytesPerSecond read = node_bandwidth(cluster, tier.kind, store ? 0 : std::min(peers, 1));
  const BytesPerSecond store_default = kStoreShare * nodes;
  TierCost cost;
  cost.write = bytes / attained(tier.write_bandwidth, store ? store_default : written * writers,
                                written * writers, tier.contention);
  cost.read = bytes / attained(tier.read_bandwidth ? tier.read_bandwidth : tier.write_bandwidth,
                               store ? store_default : read * nodes, read * nodes, tier.contention);
  cost.every = tier.every;
  cost.copies = store ? 0 : 1 + peers;
  return cost;
}

GoodputEstimate estimate_goodput(const PreparedJob& job, const Plan& plan, Seconds step,
                                 const Reliability& reliability,
                                 const Checkpointing& checkpointing) {
  const StorageTier first =
      checkpointing.tiers.empty() ? StorageTier{} : checkpointing.tiers.front();
  const TierCost tier = tier_cost(job, plan, checkpointing, first);
  const CheckpointCost cost = checkpoint_cost(job, plan, checkpointing);
  const bool waits = checkpointing.mode == CheckpointMode::synchronous;
  GoodputEstimate result;
  result.mtbf = job_mtbf(reliability, job.job.cluster, plan.devices());
  result.checkpoint_bytes = cost.bytes;
  result.blocking = blocking_of(job, plan, checkpointing, cost.copy);
  result.background = waits ? Seconds(0) : tier.write;
  const int nodes = nodes_of(job.job.cluster, plan.devices());
  result.restart = {.detect = mean_detection(reliability.heartbeat, nodes, result.mtbf),
                    .diagnose = reliability.restart.diagnose,
                    .reschedule = reliability.restart.reschedule,
                    .start = reliability.restart.start,
                    .load = tier.read + checkpointing.validation,
                    .warm_up = reliability.restart.warm_up};
  result.young = young_interval(result.blocking, result.mtbf);
  result.daly = daly_interval(result.blocking, result.mtbf);
  result.shortest = std::max(result.background, step);
  result.interval = std::max(checkpointing.interval.value_or(result.daly), result.shortest);
  // If a checkpoint is still being written when the job fails, the work before it is lost too; that
  // is counted as a longer restart.
  result.goodput = goodput({.interval = result.interval,
                            .checkpoint = result.blocking,
                            .restart = result.restart.total() + result.background,
                            .mtbf = result.mtbf});
  return result;
}

}  // namespace trainyard
