// Rings without latency at one byte a second: the time of a collective is the bytes on the wire.
#pragma once

#include "model/cost/messages/traffic.h"
#include "model/plan/plan.h"

namespace trainyard {

GroupLinks unit_ring(int ranks);
PlanLinks unit_links(const Plan& plan);

}  // namespace trainyard
