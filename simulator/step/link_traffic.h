// The bytes that every link of the cluster carries over a step, in each direction. Unlike
// Timeline::links it has all links, also those that no traffic can fill, which the simulation of
// flows leaves out (simulator/network/fabric.h). In a folded step it counts all devices that the
// ranks stand for.
#pragma once

#include <atomic>
#include <vector>

#include "model/job.h"
#include "simulator/step/conditions.h"
#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// Links 2e and 2e + 1 are the two directions of the e-th edge of make_topology(job.job.cluster);
// bytes include protocol overhead, as in Timeline::links. Linear in the devices of all groups. Once
// `*interrupted` is true (the pointer may be null), fails with "interrupted". Requires: `step` was
// made from this job and these conditions.
Expected<std::vector<LinkTraffic>> link_traffic(const PreparedJob& job,
                                                const StepConditions& conditions,
                                                const StepGraph& step,
                                                const std::atomic<bool>* interrupted = nullptr);

}  // namespace trainyard
