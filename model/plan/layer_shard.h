// The part of a plan that decides how each layer is cut over ranks, as layer_operators() takes it.
#pragma once

#include "model/plan/plan.h"
#include "model/workload/operators.h"

namespace trainyard {

LayerShard layer_shard(const Plan& plan);

}  // namespace trainyard
