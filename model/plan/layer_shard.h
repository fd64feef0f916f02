// How a plan cuts each layer.
#pragma once

#include "model/plan/plan.h"
#include "model/workload/operators.h"

namespace trainyard {

LayerShard layer_shard(const Plan& plan);

}  // namespace trainyard
