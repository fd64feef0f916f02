#include "cli/question.h"

#include <utility>

#include "model/cost/estimate.h"
#include "planner/auto_schedule.h"

namespace trainyard {

Expected<Question> read_question(const std::filesystem::path& file) {
  return read_scenario(file).map([](Scenario scenario) {
    PreparedJob job = prepare(scenario.job);
    return Question{std::move(scenario), std::move(job)};
  });
}

Expected<Plan> requested_plan(const Scenario& scenario, const PreparedJob& job) {
  return complete_plan(job, *scenario.plan);
}

Evaluator analytic_evaluator(const PreparedJob& job) {
  return [&job](const Plan& plan, Estimate& out) { estimate(job, plan, out); };
}

}  // namespace trainyard
