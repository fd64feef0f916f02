#include "simulator/life/settings.h"

namespace trainyard {

LifeSettings life_settings(const PreparedJob& job, const Plan& plan, const Reliability& reliability,
                           const Checkpointing& checkpointing) {
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
  settings.interval = estimate_goodput(job, plan, reliability, checkpointing).interval;
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
