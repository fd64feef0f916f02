#include "simulator/life/settings.h"

#include <algorithm>

namespace trainyard {
namespace {

// The share of replicas that stay complete if the missing nodes all belong to as few replicas as
// possible.
double shrunken(const LifeSettings& settings, int missing) {
  const int per_replica = settings.devices / settings.replicas;
  const int devices = missing * settings.devices_per_node;
  const int lost = (devices + per_replica - 1) / per_replica;
  return static_cast<double>(std::max(0, settings.replicas - lost)) / settings.replicas;
}

}  // namespace

double speed_without(const LifeSettings& settings, int nodes) {
  if (nodes == 0) return 1;
  if (settings.reliability.elastic == ElasticPolicy::wait) return 0;
  double best = shrunken(settings, nodes);
  for (const Replan& plan : settings.replans) {
    if (plan.nodes <= settings.nodes - nodes) best = std::max(best, plan.speed);
  }
  return best;
}

LifeSettings life_settings(const PreparedJob& job, const Plan& plan, Seconds step,
                           const Reliability& reliability, const Checkpointing& checkpointing) {
  const Cluster& cluster = job.job.cluster;
  LifeSettings settings;
  settings.devices = plan.devices();
  settings.nodes = nodes_of(cluster, plan.devices());
  settings.devices_per_node = cluster.devices_per_node;
  settings.replicas = plan.data_parallel;
  settings.nodes_per_leaf = cluster.inter.nodes_per_leaf;
  settings.spares = spares_of(reliability, settings.nodes);
  settings.reliability = reliability;
  settings.mode = checkpointing.mode;
  settings.step = step;
  settings.interval = estimate_goodput(job, plan, step, reliability, checkpointing).interval;
  settings.copy = checkpoint_cost(job, plan, checkpointing).copy;
  settings.interference = checkpointing.interference;
  settings.incremental = checkpointing.incremental;
  settings.keep = checkpointing.keep;
  settings.load_failure = checkpointing.load_failure;
  settings.validation = checkpointing.validation;
  for (const StorageTier& tier : checkpointing.tiers) {
    settings.tiers.push_back(tier_cost(job, plan, checkpointing, tier));
  }
  if (settings.tiers.empty()) settings.tiers.push_back(tier_cost(job, plan, checkpointing, {}));
  return settings;
}

}  // namespace trainyard
