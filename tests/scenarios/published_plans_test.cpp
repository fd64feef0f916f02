// Runs whose plans were published (sources in published_plans.json). In any space that contains the
// published degrees, the planner's plan is never slower than the published one under the same cost
// model. The spaces are bounded to be quick; scripts/planning searches the complete ones.
#include <gtest/gtest.h>

#include <limits>

#include "model/cost/estimate.h"
#include "scenarios/json/file.h"
#include "scenarios/json/json_document.h"
#include "scenarios/question.h"
#include "scenarios/scenario_text.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

Json runs_with_plans() {
  return parse_json(read_file(test_folder() / "published_plans.json").value()).value();
}

Question question_with(const Json& run, const char* key, const Json& value) {
  Json scenario = run.at("scenario");
  scenario[key] = value;
  return question_of(scenario.dump(), test_folder() / "published_plans.json").value();
}

// The step of the fastest published plan that fits.
Seconds published_step(const Json& run) {
  Seconds fastest(std::numeric_limits<double>::infinity());
  for (const Json& row : run.at("rows")) {
    if (!row.contains("plan")) continue;
    const Question question = question_with(run, "plan", row.at("plan"));
    const Plan plan = requested_plan(question.scenario, question.job).value();
    const Estimate priced = estimate(question.job, plan);
    if (priced.feasible) fastest = std::min(fastest, priced.step_time);
  }
  return fastest;
}

TEST(PublishedPlans, AreNeverFasterThanThePlanners) {
  const Json runs = runs_with_plans();
  ASSERT_EQ(runs.size(), 4u);
  for (const Json& run : runs) {
    const auto name = run.at("run").get<std::string>();
    const Seconds published = published_step(run);
    ASSERT_LT(published, Seconds(1e6)) << name << ": a published plan must fit, to be compared";
    const Question question = question_with(run, "planner", run.at("quick"));
    SearchOptions options = search_options(question.scenario);
    options.top = 1;
    const SearchResult found = search(question.job, options, analytic_evaluator(question.job));
    ASSERT_TRUE(found.optimal) << name;
    ASSERT_FALSE(found.plans.empty()) << name;
    EXPECT_LE(found.plans.front().estimate.step_time, published) << name;
  }
}

}  // namespace
}  // namespace trainyard
