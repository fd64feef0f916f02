// A scenario that is ready to be priced.
#pragma once

#include <filesystem>

#include "model/expected.h"
#include "model/job.h"
#include "planner/planner.h"
#include "scenarios/scenario.h"

namespace trainyard {

struct Question {
  Scenario scenario;
  PreparedJob job;
};

Expected<Question> read_question(const std::filesystem::path& file);

// The plan that the scenario asks for, complete, with schedule and recompute `auto`
// decided.
Expected<Plan> requested_plan(const Scenario& scenario, const PreparedJob& job);

// The analytic estimate. The evaluator refers to `job`.
Evaluator analytic_evaluator(const PreparedJob& job);

}  // namespace trainyard
