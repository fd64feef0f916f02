#include "model/cost/sharding/shard_divisors.h"

namespace trainyard {
namespace {

ShardDivisors divisors_of(int zero_stage, double ranks) {
  ShardDivisors out;
  if (zero_stage >= 1) out.optimizer = ranks;
  if (zero_stage >= 2) out.gradients = ranks;
  if (zero_stage >= 3) out.parameters = ranks;
  return out;
}

}  // namespace

ShardDivisors dense_divisors(const Plan& plan) {
  return divisors_of(plan.held_zero_stage(), plan.sharding_group);
}

ShardDivisors expert_divisors(const Plan& plan) {
  return divisors_of(plan.held_zero_stage(), plan.expert_data_parallel);
}

}  // namespace trainyard
