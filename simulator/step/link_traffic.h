// What every link of the cluster carries over a step, in either direction: every call of the step
// on the links of its transfers, also on those that no traffic can fill, which the simulation of
// flows leaves out (simulator/network/fabric.h). Of a folded step: of all devices that its ranks
// stand for.
#pragma once

#include <atomic>
#include <vector>

#include "model/job.h"
#include "simulator/step/conditions.h"
#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// Links 2e and 2e + 1 are the e-th edge of make_topology(job.job.cluster), both ways; bytes count
// as in Timeline::links, with protocol overhead. Linear in the devices of all groups. `interrupted`
// (may be null): give up, an error that says "interrupted".
// Requires: `step` was made of the job, which was played on these conditions.
Expected<std::vector<LinkTraffic>> link_traffic(const PreparedJob& job,
                                                const StepConditions& conditions,
                                                const StepGraph& step,
                                                const std::atomic<bool>* interrupted = nullptr);

}  // namespace trainyard
