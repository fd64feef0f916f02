// Worked questions. Every document of scenarios/cases/ is read, planned (by its own plan or by the
// planner) and priced, or its run is simulated ("answer": "goodput"), or the points of its sweep
// are answered. cases.json says what values of the answer are expected and from which source: a
// value with a tolerance, a bound, or a bound by a value of another case or by another value of the
// same case.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "planner/planner.h"
#include "scenarios/json/file.h"
#include "scenarios/json/json_document.h"
#include "scenarios/question.h"
#include "scenarios/scenario.h"
#include "scenarios/sweep/answer.h"
#include "scenarios/sweep/results/row_json.h"
#include "scenarios/write/estimate.h"
#include "scenarios/write/goodput.h"
#include "scenarios/write/groups.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

Json expectations() { return parse_json(read_file(test_folder() / "cases.json").value()).value(); }

// The document's plan, or the best plan that the planner finds; if none fits, the closest.
Expected<Plan> plan_of(const Scenario& scenario, const PreparedJob& job) {
  if (scenario.plan) {
    return make_plan(*scenario.plan, scenario.job.model, scenario.job.cluster,
                     scenario.job.training);
  }
  SearchOptions options = search_options(scenario);
  options.top = 1;
  SearchResult found = search(job, options, analytic_evaluator(job));
  std::vector<Candidate>& plans = found.plans.empty() ? found.closest : found.plans;
  if (plans.empty()) return failure(scenario.name, "no plan is legal");
  return std::move(plans.front().plan);
}

// The answer to a case as `estimate --format json` prints it, or for unlike nodes as `plan` prints
// it. It also has `states`, the bytes of parameters, gradients and optimizer on the first stage.
Expected<Json> estimate_of(const fs::path& file) {
  const auto scenario = read_scenario(file);
  if (!scenario) return tl::unexpected(scenario.error());
  if (scenario->unlike) {
    const GroupedJob grouped{scenario->job.model, scenario->job.training, *scenario->unlike};
    const GroupedPlans found = plan_groups(grouped, group_options(*scenario));
    return Json::parse(groups_json(*scenario, in_order(found), found));
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

// The answer as `goodput --format json` prints it, without the search for the best interval and
// spares.
Expected<Json> goodput_of(const fs::path& file) {
  const auto question = read_question(file);
  if (!question) return tl::unexpected(question.error());
  const auto plan = plan_of(question->scenario, question->job);
  if (!plan) return tl::unexpected(plan.error());
  const Candidate candidate{*plan, estimate(question->job, *plan)};
  RunReport report;
  auto settings = settings_of_run(question->scenario, question->job, candidate);
  if (!settings) return tl::unexpected(settings.error());
  report.settings = *settings;
  report.campaign = summary_of(
      live_many(*settings, {.runs = question->scenario.run.runs, .seed = 0, .threads = 1}));
  report.closed_form =
      estimate_goodput(question->job, *plan, settings->step, question->scenario.reliability,
                       question->scenario.checkpoint);
  report.bill = bill_of(question->job.job.cluster, candidate.estimate, *settings, report.campaign);
  return Json::parse(goodput_json(question->scenario, *plan, report));
}

// The rows of the points; null for a point that the constraints leave out. A real run counts as one
// second.
Expected<Json> points_of(const fs::path& file) {
  const auto sweep = read_sweep(file);
  if (!sweep) return tl::unexpected(sweep.error());
  PointAnswerer answerer(*sweep, [](const std::string& scenario) -> Expected<HardwareRun> {
    const auto read = parse_scenario(scenario, "point");
    if (!read) return tl::unexpected(read.error());
    return HardwareRun{.step_time = Seconds(1), .peak_memory = Bytes(1)};
  });
  Json rows = Json::array();
  PointRow row;
  for (std::int64_t point = 0; point < sweep->points; ++point) {
    rows.push_back(answerer.answer(point, row) ? row_value(row) : Json());
  }
  return rows;
}

Expected<Json> answer_to(const std::string& name, const std::string& kind) {
  const fs::path file = source_folder() / "scenarios" / "cases" / (name + ".json");
  if (kind == "goodput") return goodput_of(file);
  return kind == "sweep" ? points_of(file) : estimate_of(file);
}

// The answer to a case, which is computed once.
const Expected<Json>& known_answer(const std::string& name, const Json& expectation) {
  static std::map<std::string, Expected<Json>> known;
  const std::string kind = expectation.value("answer", "estimate");
  const auto found = known.find(name + kind);
  if (found != known.end()) return found->second;
  return known.emplace(name + kind, answer_to(name, kind)).first->second;
}

// The value as a number, with 0 and 1 for false and true.
double value_of(const std::string& name, const Json& expectation, const char* which = "value") {
  const auto& answer = known_answer(name, expectation);
  EXPECT_TRUE(answer.has_value()) << answer.error().where << ": " << answer.error().message;
  if (!answer) return -1;
  const Json& value = answer->at(Json::json_pointer(expectation.at(which)));
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
  if (expectation.contains("at_most_value")) {
    return {.high = value_of(expectation.at("case"), expectation, "at_most_value")};
  }
  if (expectation.contains("at_least")) return {.low = expectation.at("at_least").get<double>()};
  const double expected = expectation.at("expected");
  const double tolerance = expectation.at("tolerance").get<double>() * expected;
  return {expected - tolerance, expected + tolerance};
}

// The expectations of each case, so that one answer serves all of them.
using Expectations = std::map<std::string, std::vector<Json>>;

Expectations expectations_by_case() {
  Expectations cases;
  for (const Json& expectation : expectations()) {
    cases[expectation.at("case")].push_back(expectation);
  }
  return cases;
}

class Cases : public ::testing::TestWithParam<Expectations::value_type> {};

TEST_P(Cases, AreAnsweredAsExpected) {
  const auto& [name, values] = GetParam();
  for (const Json& expectation : values) {
    const Range range = range_of(expectation);
    const double found = value_of(name, expectation);
    EXPECT_GE(found, range.low) << expectation.at("value") << ": " << expectation.at("source");
    EXPECT_LE(found, range.high) << expectation.at("value") << ": " << expectation.at("source");
  }
}

std::string test_name(const testing::TestParamInfo<Expectations::value_type>& tested) {
  std::string name = tested.param.first;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Worked, Cases, ::testing::ValuesIn(expectations_by_case()), test_name);

// The documents of the cases, without the folder of other tools' files.
std::vector<fs::path> case_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(source_folder() / "scenarios" / "cases")) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

TEST(CaseFolder, HasAnExpectationForEveryCase) {
  std::set<std::string> expected;
  for (const auto& [name, values] : expectations_by_case()) expected.insert(name);
  std::set<std::string> found;
  for (const fs::path& file : case_files()) found.insert(file.stem());
  EXPECT_EQ(found, expected);
}

TEST(CaseFolder, AsksAQuestionInEveryCase) {
  for (const fs::path& file : case_files()) {
    const Json document = parse_json(read_file(file).value()).value();
    EXPECT_TRUE(document.contains("question")) << file;
  }
}

}  // namespace
}  // namespace trainyard
