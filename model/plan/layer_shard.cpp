#include "model/plan/layer_shard.h"

namespace trainyard {

LayerShard layer_shard(const Plan& plan) {
  return {.tensor = plan.tensor_parallel,
          .sequence_parallel = plan.sequence_parallel,
          .context = plan.context_parallel,
          .context_algorithm = plan.context_parallel_algorithm,
          .expert = plan.expert_parallel,
          .expert_tensor = plan.expert_tensor_parallel,
          .micro_batch = plan.micro_batch,
          .capacity_factor = plan.capacity_factor,
          .load_imbalance = plan.load_imbalance};
}

}  // namespace trainyard
