#include "executor/scale_down.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard {
namespace {

void shrink_cluster(Cluster& cluster, int ranks) {
  cluster.devices_per_node = std::min(cluster.devices_per_node, ranks);
  while (ranks % cluster.devices_per_node != 0) --cluster.devices_per_node;
  cluster.nodes = ranks / cluster.devices_per_node;
}

// Experts stay where they are: their groups tile what is left of the replicas.
bool keeps_experts(const Plan& plan, int replicas) {
  const int ranks = plan.tensor_parallel * plan.context_parallel * replicas;
  return ranks % (plan.expert_parallel * plan.expert_tensor_parallel) == 0;
}

int replicas_for(const Plan& plan, int ranks_of_replica, int ranks) {
  int replicas = std::min(plan.data_parallel, ranks / ranks_of_replica);
  while (replicas > 0 && !keeps_experts(plan, replicas)) --replicas;
  return replicas;
}

}  // namespace

Expected<ScaledDown> scale_down(const Job& job, const PlanRequest& request, const Plan& plan,
                                int ranks) {
  ScaledDown out{job, request, {}};
  if (plan.devices() <= ranks) return out;
  const int of_stage = plan.tensor_parallel * plan.context_parallel;
  int stages = plan.pipeline_parallel;
  while (stages > 1 && replicas_for(plan, of_stage * stages, ranks) == 0) --stages;
  const int replicas = replicas_for(plan, of_stage * stages, ranks);
  if (replicas == 0) {
    return failure("--ranks",
                   fmt::format("found {}; one stage of one replica has {} ranks{}", ranks, of_stage,
                               plan.expert_parallel > 1 ? ", and its experts more" : ""));
  }
  const auto change = [&out](const char* key, auto before, auto after) {
    if (before != after) out.changes.push_back(fmt::format("{} {} → {}", key, before, after));
  };
  const int layers = std::max(1, job.model.layers / plan.pipeline_parallel) * stages;
  if (stages < plan.pipeline_parallel) {
    change("layers", job.model.layers, layers);
    out.job.model.layers = layers;
    out.job.model.dense_layers = std::min(job.model.dense_layers, layers);
    out.request.layers_per_stage.clear();
  }
  change("pipeline_parallel", plan.pipeline_parallel, stages);
  change("data_parallel", plan.data_parallel, replicas);
  out.request.pipeline_parallel = stages;
  out.request.data_parallel = replicas;
  if (stages == 1) {
    out.request.virtual_stages = 1;
    out.request.schedule.clear();
  }
  const int sharing = replicas * plan.context_parallel;
  if (request.sharding_group && *request.sharding_group > sharing) {
    out.request.sharding_group = sharing;
  }
  out.job.training.global_batch = std::int64_t{plan.microbatches} * plan.micro_batch * replicas;
  change("global_batch", job.training.global_batch, out.job.training.global_batch);
  shrink_cluster(out.job.cluster, of_stage * stages * replicas);
  return out;
}

}  // namespace trainyard
