// By how many ranks ZeRO divides the states of a class of parameters: dense ones by the sharding
// group, experts by their data parallelism (Rajbhandari et al. 2020, handbook §7).
#pragma once

#include "model/plan/plan.h"

namespace trainyard {

struct ShardDivisors {
  double optimizer = 1, gradients = 1, parameters = 1;
};
ShardDivisors dense_divisors(const Plan& plan);
ShardDivisors expert_divisors(const Plan& plan);

}  // namespace trainyard
