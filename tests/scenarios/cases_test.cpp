// Worked questions: every document of scenarios/cases/ is read, planned and priced, and values of
// the answer are held to what cases.json expects of them, with tolerance and source.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "scenarios/file.h"
#include "scenarios/json_document.h"
#include "scenarios/output.h"
#include "scenarios/scenario.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

Json expectations() { return parse_json(read_file(test_folder() / "cases.json").value()).value(); }

// The answer to a case as `estimate --format json` prints it, with `states`: the bytes of
// parameters, gradients and optimizer on the first stage.
Expected<Json> answer_to(const fs::path& file) {
  auto scenario = read_scenario(file);
  if (!scenario) return tl::unexpected(scenario.error());
  const PreparedJob job = prepare(scenario->job);
  const auto plan = make_plan(*scenario->plan, scenario->job.model, scenario->job.cluster,
                              scenario->job.training);
  if (!plan) return tl::unexpected(plan.error());
  Json answer = Json::parse(estimate_json(*scenario, job, *plan, estimate(job, *plan)));
  double states = 0;
  for (const char* kind : {"parameters_bytes", "gradients_bytes", "optimizer_bytes"}) {
    states += answer["stages"][0]["memory"][kind].get<double>();
  }
  answer["states"] = states;
  return answer;
}

class Cases : public ::testing::TestWithParam<Json> {};

TEST_P(Cases, AreAnsweredWithinTheirTolerance) {
  const Json& expectation = GetParam();
  const std::string name = expectation.at("case");
  const auto answer = answer_to(source_folder() / "scenarios" / "cases" / (name + ".json"));
  ASSERT_TRUE(answer.has_value()) << answer.error().where << ": " << answer.error().message;
  const double found = answer->at(Json::json_pointer(expectation.at("value"))).get<double>();
  const double expected = expectation.at("expected");
  EXPECT_NEAR(found, expected, expectation.at("tolerance").get<double>() * expected)
      << expectation.at("source");
}

std::string test_name(const testing::TestParamInfo<Json>& tested) {
  std::string name =
      tested.param.at("case").get<std::string>() + tested.param.at("value").get<std::string>();
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

}  // namespace
}  // namespace trainyard
