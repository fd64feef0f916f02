// Small jobs whose steps are played under conditions.
#pragma once

#include "simulator/step.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {

// Llama-3.1-8B, eight layers of it, on H100: so many nodes of so many devices with a NIC each.
PreparedJob job_of(int nodes, int devices, std::int64_t global_batch);

// The test fails where it cannot be played.
StepSimulation disturbed(const PreparedJob& job, const PlanRequest& request,
                         const StepConditions& conditions,
                         NetworkGrain grain = NetworkGrain::collective);

}  // namespace trainyard
