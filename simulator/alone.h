// Simulates the step of one rank without its peers, as `trainyard run --alone` executes it. The
// rank runs its own operations; a local copy stands in for each collective and message. The rank
// never waits for another one, so the step has no pipeline bubbles, and it has the mean kernel
// times, not those of the slowest of many ranks. It fills what it would receive where the program
// has the receive, and not before.
//
// A copy takes bytes / memory bandwidth + the launch of a kernel. Its bytes are those that the
// executor's transports without peers read and write (`stand_in_transport`,
// `stand_in_device_transport`). Not counted: how much a copy slows the kernels beside it, and the
// packing of an exchange's message.
#pragma once

#include "model/expected.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

struct AloneStep {
  StepGraph step;  // one rank, with its stage's list; the lists of other stages are empty
  Timeline timeline;
  Seconds step_time;  // from time zero to the end of its last task, plus the stack's step overhead
};

// Requires: as simulate() of simulator/step.h, and 0 <= stage < pipeline stages of the plan. Fails
// where the plan cannot be lowered.
Expected<AloneStep> simulate_alone(const PreparedJob& job, const Plan& plan, int stage);

}  // namespace trainyard
