// Rings without latency at one byte per second: the time of a collective in seconds is the number
// of bytes that each rank sends.
#pragma once

#include "model/cost/messages/traffic.h"
#include "model/plan/plan.h"

namespace trainyard {

GroupLinks unit_ring(int ranks);
PlanLinks unit_links(const Plan& plan);

}  // namespace trainyard
