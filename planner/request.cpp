#include "planner/request.h"

#include "model/schedule/schedule.h"

namespace trainyard {

PlanRequest request_of(const Plan& plan) {
  PlanRequest request;
  request.tensor_parallel = plan.tensor_parallel;
  request.sequence_parallel = plan.sequence_parallel;
  request.context_parallel = plan.context_parallel;
  request.context_parallel_algorithm = plan.context_parallel_algorithm;
  request.pipeline_parallel = plan.pipeline_parallel;
  request.virtual_stages = plan.virtual_stages;
  if (!plan.passes) {
    request.schedule = plan.schedule->name;
  }
  request.passes = plan.passes;
  request.layers_per_stage = plan.layers_per_stage;
  request.data_parallel = plan.data_parallel;
  request.expert_parallel = plan.expert_parallel;
  request.expert_tensor_parallel = plan.expert_tensor_parallel;
  request.micro_batch = plan.micro_batch;
  request.zero_stage = plan.zero_stage;
  if (plan.sharding_group != plan.data_parallel * plan.context_parallel) {
    request.sharding_group = plan.sharding_group;
  }
  request.recompute = plan.recompute;
  request.recompute_per_stage = plan.recompute_per_stage;
  request.overlap = {.tensor_parallel = plan.overlap.tensor_parallel,
                     .context_parallel = plan.overlap.context_parallel,
                     .expert_parallel = plan.overlap.expert_parallel,
                     .pipeline = plan.overlap.pipeline,
                     .data_parallel = plan.overlap.data_parallel};
  request.offload = plan.offload;
  if (plan.capacity_factor > 0) {
    request.capacity_factor = plan.capacity_factor;
  }
  request.load_imbalance = plan.load_imbalance;
  request.rank_order = plan.rank_order;
  request.collective = plan.collective;
  request.optimizer_barrier = plan.optimizer_barrier;
  return request;
}

}  // namespace trainyard
