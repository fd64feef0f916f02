// The step of one rank without its peers, as `trainyard run --alone` executes it: the rank's own
// operations, and local copies of as many bytes in the place of collectives and messages. Nothing
// waits for another rank, so bubbles of the pipeline are not in it, nor what the slowest of many
// ranks takes longer than the mean.
//
// A copy takes a kernel's launch and its bytes over the memory bandwidth: those that the executor's
// transports without peers read and write (`stand_in_transport`, `stand_in_device_transport`). What
// it takes from kernels beside it is not counted, nor how an exchange packs its message.
#pragma once

#include "model/expected.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

struct AloneStep {
  StepGraph step;     // one rank, with the list of its stage; those of other stages are empty
  Timeline timeline;  // of that rank
  Seconds step_time;  // from its first task to the end of its last, with the stack's step overhead
};

// Requires: as simulate(), and a stage of the plan. Fails where the plan cannot be lowered.
Expected<AloneStep> simulate_alone(const PreparedJob& job, const Plan& plan, int stage);

}  // namespace trainyard
