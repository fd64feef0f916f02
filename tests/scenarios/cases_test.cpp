// Worked questions: every document of scenarios/cases/ is read, planned (by its own plan, or by the
// planner) and priced, and values of the answer are held to what cases.json expects of them, with
// its source: a value with a tolerance, a bound, or a bound by the same value of another case.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <set>

#include "planner/planner.h"
#include "scenarios/file.h"
#include "scenarios/json_document.h"
#include "scenarios/output.h"
#include "scenarios/scenario.h"
#include "scenarios/write_groups.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

Json expectations() { return parse_json(read_file(test_folder() / "cases.json").value()).value(); }

// The plan of the document, or the best that the planner finds; where none fits, the closest.
Expected<Plan> plan_of(const Scenario& scenario, const PreparedJob& job) {
  if (scenario.plan) {
    return make_plan(*scenario.plan, scenario.job.model, scenario.job.cluster,
                     scenario.job.training);
  }
  SearchOptions options;
  options.space = scenario.space;
  options.top = 1;
  SearchResult found =
      search(job, options, [&job](const Plan& plan, Estimate& out) { estimate(job, plan, out); });
  std::vector<Candidate>& plans = found.plans.empty() ? found.closest : found.plans;
  if (plans.empty()) return failure(scenario.name, "no plan is legal");
  return std::move(plans.front().plan);
}

// The answer to a case as `estimate --format json` prints it, with `states`: the bytes of
// parameters, gradients and optimizer on the first stage. For unlike nodes as `plan` prints it.
Expected<Json> answer_to(const std::string& name) {
  const auto scenario = read_scenario(source_folder() / "scenarios" / "cases" / (name + ".json"));
  if (!scenario) return tl::unexpected(scenario.error());
  if (scenario->unlike) {
    const GroupedJob grouped{scenario->job.model, scenario->job.training, *scenario->unlike};
    return Json::parse(groups_json(*scenario, in_order(plan_groups(grouped))));
  }
  const PreparedJob job = prepare(scenario->job);
  const auto plan = plan_of(*scenario, job);
  if (!plan) return tl::unexpected(plan.error());
  Json answer = Json::parse(estimate_json(*scenario, job, *plan, estimate(job, *plan)));
  double states = 0;
  for (const char* kind : {"parameters_bytes", "gradients_bytes", "optimizer_bytes"}) {
    states += answer["stages"][0]["memory"][kind].get<double>();
  }
  answer["states"] = states;
  return answer;
}

// A number, or 0 and 1 for false and true.
double value_of(const std::string& name, const Json& expectation) {
  const auto answer = answer_to(name);
  EXPECT_TRUE(answer.has_value()) << answer.error().where << ": " << answer.error().message;
  if (!answer) return -1;
  const Json& value = answer->at(Json::json_pointer(expectation.at("value")));
  return value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>();
}

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

Range range_of(const Json& expectation) {
  if (expectation.contains("at_most_that_of")) {
    return {.high = value_of(expectation.at("at_most_that_of"), expectation)};
  }
  if (expectation.contains("at_least")) return {.low = expectation.at("at_least").get<double>()};
  const double expected = expectation.at("expected");
  const double tolerance = expectation.at("tolerance").get<double>() * expected;
  return {expected - tolerance, expected + tolerance};
}

class Cases : public ::testing::TestWithParam<Json> {};

TEST_P(Cases, AreAnsweredAsExpected) {
  const Json& expectation = GetParam();
  const Range range = range_of(expectation);
  const double found = value_of(expectation.at("case"), expectation);
  EXPECT_GE(found, range.low) << expectation.at("source");
  EXPECT_LE(found, range.high) << expectation.at("source");
}

std::string test_name(const testing::TestParamInfo<Json>& tested) {
  std::string name =
      tested.param.at("case").get<std::string>() + tested.param.at("value").get<std::string>();
  if (tested.param.contains("at_most_that_of")) name += "_compared";
  if (tested.param.contains("at_least")) name += "_bounded";
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Worked, Cases, ::testing::ValuesIn(expectations()), test_name);

TEST(CaseFolder, HasAnExpectationForEveryCase) {
  std::set<std::string> expected;
  for (const Json& expectation : expectations()) expected.insert(expectation.at("case"));
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(source_folder() / "scenarios" / "cases")) {
    found.insert(entry.path().stem());
  }
  EXPECT_EQ(found, expected);
}

TEST(CaseFolder, AsksAQuestionInEveryCase) {
  for (const auto& entry : fs::directory_iterator(source_folder() / "scenarios" / "cases")) {
    const Json document = parse_json(read_file(entry.path()).value()).value();
    EXPECT_TRUE(document.contains("question")) << entry.path();
  }
}

}  // namespace
}  // namespace trainyard
