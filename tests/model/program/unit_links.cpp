#include "tests/model/program/unit_links.h"

namespace trainyard {

GroupLinks unit_ring(int ranks) {
  GroupLinks ring;
  ring.size = ring.ranks_per_domain = ranks;
  ring.inside = ring.inside_pair = BytesPerSecond(1);
  return ring;
}

PlanLinks unit_links(const Plan& plan) {
  const int ranks = plan.data_parallel * plan.context_parallel;
  PlanLinks links;
  links.tensor = unit_ring(plan.tensor_parallel);
  links.context = unit_ring(plan.context_parallel);
  links.pipeline = unit_ring(plan.pipeline_parallel);
  links.dense_gradient = unit_ring(ranks);
  links.dense_shard = unit_ring(plan.sharding_group);
  links.dense_replica = unit_ring(ranks / plan.sharding_group);
  links.expert = unit_ring(plan.expert_parallel);
  links.expert_tensor = unit_ring(plan.expert_tensor_parallel);
  links.expert_data = unit_ring(plan.expert_data_parallel);
  links.choice.algorithm = "ring";
  return links;
}

}  // namespace trainyard
