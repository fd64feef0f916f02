// The output of `trainyard simulate --format json` (design §4): the keys of an estimate with
// simulated values, and what only a simulation knows.
#pragma once

#include <string>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "scenarios/scenario.h"
#include "scenarios/unlike_step.h"
#include "simulator/reading/comparison.h"
#include "simulator/step.h"

namespace trainyard {

std::string simulation_json(const Scenario& scenario, const PreparedJob& job, const Plan& plan,
                            const StepSimulation& simulation, Seconds wall_time);

// The same for a pipeline through groups of unlike nodes: the keys of grouped_estimate_json.
std::string grouped_simulation_json(const Scenario& scenario, const UnlikeStep& step,
                                    Seconds wall_time);

// The output of `trainyard compare --format json`.
std::string comparison_json(Seconds before, Seconds after,
                            const std::vector<OperationDifference>& differences);

}  // namespace trainyard
