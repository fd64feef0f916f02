// By how many ranks ZeRO divides optimizer state, gradients and parameters: those of dense
// parameters by the sharding group, those of experts by D_e (Rajbhandari et al. 2020, handbook §7).
// 1: the ZeRO stage does not divide them.
#pragma once

#include "model/plan/plan.h"

namespace trainyard {

struct ShardDivisors {
  double optimizer = 1, gradients = 1, parameters = 1;
};
ShardDivisors dense_divisors(const Plan& plan);
ShardDivisors expert_divisors(const Plan& plan);

}  // namespace trainyard
