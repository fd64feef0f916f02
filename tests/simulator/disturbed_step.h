// Small jobs whose steps are simulated under conditions such as stragglers and jitter.
#pragma once

#include "simulator/step.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {

// Llama-3.1-8B cut to eight layers, on `nodes` nodes of `devices` H100 each, with one NIC per
// device.
PreparedJob job_of(int nodes, int devices, std::int64_t global_batch);

// Simulates the step of the plan under the conditions; fails the test if it cannot be played.
StepSimulation disturbed(const PreparedJob& job, const PlanRequest& request,
                         const StepConditions& conditions,
                         NetworkGrain grain = NetworkGrain::collective);

}  // namespace trainyard
