// Which points a sweep document makes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <thread>

#include "scenarios/sweep/sha256.h"
#include "tests/scenarios/sweep/sweeps.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> points_of(const std::string& keys) {
  const auto sweep = sweep_from(keys);
  EXPECT_TRUE(sweep.has_value()) << sweep.error().where << ": " << sweep.error().message;
  return sweep ? all_overrides(*sweep) : std::vector<std::string>();
}

std::string error_of(const std::string& keys) {
  const auto sweep = sweep_from(keys);
  return sweep ? "none" : sweep.error().where + ": " + sweep.error().message;
}

TEST(SweepPoints, AreEveryCombinationWithTheLastAxisFastest) {
  EXPECT_THAT(points_of(R"("vary": [
                { "key": "/plan/tensor_parallel", "values": [1, 2] },
                { "key": "cluster.nodes", "values": [4, 8] } ])"),
              ElementsAre(R"({"plan.tensor_parallel":1,"cluster.nodes":4})",
                          R"({"plan.tensor_parallel":1,"cluster.nodes":8})",
                          R"({"plan.tensor_parallel":2,"cluster.nodes":4})",
                          R"({"plan.tensor_parallel":2,"cluster.nodes":8})"));
}

// The scenario still has its tag, as when it was copied from a file.
TEST(SweepPoints, OfAScenarioWithItsTagAreThoseWithoutIt) {
  const std::string vary = R"("vary": [ { "key": "cluster.nodes", "values": [4, 8] } ])";
  const auto tagged = [&](const std::string& tag) {
    std::string text = sweep_text(vary);
    const std::string scenario = R"("scenario": {)";
    text.insert(text.find(scenario) + scenario.size(), R"( "trainyard": ")" + tag + R"(",)");
    return read_sweep(write_sweep_file("tagged.json", text));
  };
  const auto sweep = tagged("scenario/1");
  ASSERT_TRUE(sweep) << sweep.error().where << ": " << sweep.error().message;
  EXPECT_EQ(all_overrides(*sweep), points_of(vary));
  EXPECT_EQ(sweep->text, sweep_from(vary)->text);
  const auto other = tagged("model/1");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().where, HasSubstr("/scenario/trainyard"));
  EXPECT_EQ(other.error().message, R"(found "model/1"; allowed: "scenario/1")");
}

TEST(SweepPoints, OfARangeHaveEqualDifferencesOrEqualRatios) {
  EXPECT_THAT(points_of(R"("vary": [
                { "key": "cluster.nodes", "from": 1, "to": 8, "steps": 4, "scale": "geometric" } ])"),
              ElementsAre(R"({"cluster.nodes":1})", R"({"cluster.nodes":2})",
                          R"({"cluster.nodes":4})", R"({"cluster.nodes":8})"));
  EXPECT_THAT(points_of(R"("vary": [ { "key": "cluster.node.nic_bandwidth",
                "from": "100 Gbit/s", "to": "400 Gbit/s", "steps": 3 } ])"),
              ElementsAre(R"({"cluster.node.nic_bandwidth":"100 Gbit/s"})",
                          R"({"cluster.node.nic_bandwidth":"250 Gbit/s"})",
                          R"({"cluster.node.nic_bandwidth":"400 Gbit/s"})"));
  // 100 · 8^(2/3) is exactly 400, whatever the power function returns.
  EXPECT_THAT(points_of(R"("vary": [ { "key": "cluster.node.nic_bandwidth", "from": "100 Gbit/s",
                "to": "800 Gbit/s", "steps": 4, "scale": "geometric" } ])")[2],
              R"({"cluster.node.nic_bandwidth":"400 Gbit/s"})");
}

TEST(SweepPoints, OfWholeNumbersCountAValueOnce) {
  EXPECT_THAT(
      points_of(R"("vary": [
                { "key": "cluster.nodes", "from": 1, "to": 3, "steps": 9 } ])"),
      ElementsAre(R"({"cluster.nodes":1})", R"({"cluster.nodes":2})", R"({"cluster.nodes":3})"));
}

TEST(SweepPoints, OfAZipVaryTogether) {
  EXPECT_THAT(points_of(R"("vary": [ { "zip": [
                { "key": "cluster.nodes", "values": [4, 8] },
                { "key": "training.global_batch", "values": [64, 128] } ] } ])"),
              ElementsAre(R"({"cluster.nodes":4,"training.global_batch":64})",
                          R"({"cluster.nodes":8,"training.global_batch":128})"));
}

TEST(SweepPoints, OneAtATimeBeginWithTheScenarioItself) {
  EXPECT_THAT(points_of(R"("combine": "one-at-a-time", "vary": [
                { "key": "plan.tensor_parallel", "values": [4, 8] },
                { "key": "cluster.nodes", "values": [16] } ])"),
              ElementsAre("{}", R"({"plan.tensor_parallel":4})", R"({"plan.tensor_parallel":8})",
                          R"({"cluster.nodes":16})"));
}

TEST(SweepPoints, AreLeftOutByConditionsAndKeepTheirNumbers) {
  EXPECT_THAT(points_of(R"("where": ["plan.tensor_parallel * plan.micro_batch < 8"], "vary": [
                { "key": "plan.tensor_parallel", "values": [8, 2] } ])"),
              ElementsAre("", R"({"plan.tensor_parallel":2})"));
}

// 2,000 draws from {1, 2, 4, 8}: 500 ± 19 each (standard deviation; 5 are allowed). Log-uniform
// between 1 and 100: half of the draws are below 10, ± 22.
TEST(SweepPoints, AreDrawnEvenlyFromValuesAndByTheirScaleFromRanges) {
  const auto sweep = sweep_from(R"("combine": "random", "samples": 2000, "seed": 7, "vary": [
      { "key": "plan.tensor_parallel", "values": [1, 2, 4, 8] },
      { "key": "plan.load_imbalance", "from": 1.0, "to": 100.0, "scale": "geometric" } ])");
  ASSERT_TRUE(sweep.has_value()) << sweep.error().message;
  std::vector<SweepValue> values;
  int eights = 0;
  int low = 0;
  for (std::int64_t point = 0; point < sweep->points; ++point) {
    values_at(*sweep, point, values);
    eights += values[0].value == 8 ? 1 : 0;
    const double drawn = values[1].value.get<double>();
    EXPECT_GE(drawn, 1);
    EXPECT_LE(drawn, 100);
    low += drawn < 10 ? 1 : 0;
  }
  EXPECT_NEAR(eights, 500, 97);
  EXPECT_NEAR(low, 1000, 112);
}

TEST(SweepPoints, AreDrawnTheSameInAnyOrderAndOtherwiseForAnotherSeed) {
  const std::string axes = R"("vary": [ { "key": "cluster.nodes", "from": 1, "to": 1000 } ])";
  const auto drawn = points_of(R"("combine": "random", "samples": 20, "seed": 1, )" + axes);
  const auto more = points_of(R"("combine": "random", "samples": 40, "seed": 1, )" + axes);
  const auto other = points_of(R"("combine": "random", "samples": 20, "seed": 2, )" + axes);
  EXPECT_TRUE(std::equal(drawn.begin(), drawn.end(), more.begin()));
  EXPECT_NE(drawn, other);
  EXPECT_GT(std::set<std::string>(more.begin(), more.end()).size(), 30u);
}

TEST(SweepPoints, OfACsvFileAreItsLines) {
  write_sweep_file("points.csv",
                   "plan.tensor_parallel,/training/stack\r\n4,fsdp\n,\"megatron-core\"\n8,\n");
  EXPECT_THAT(
      points_of(R"("overrides": "points.csv")"),
      ElementsAre(R"({"plan.tensor_parallel":4,"training.stack":"fsdp"})",
                  R"({"training.stack":"megatron-core"})", R"({"plan.tensor_parallel":8})"));
}

// A line without a value is a point of the unchanged scenario; an empty line at the end is no
// point.
TEST(SweepPoints, OfACsvFileEndBeforeEmptyLines) {
  for (const char* end : {"", "\n", "\n\n", "\r\n\r\n"}) {
    write_sweep_file("points.csv", fmt::format("plan.tensor_parallel\n4\n\n8{}", end));
    EXPECT_THAT(
        points_of(R"("overrides": "points.csv")"),
        ElementsAre(R"({"plan.tensor_parallel":4})", "{}", R"({"plan.tensor_parallel":8})"));
  }
}

// Also if no line has a value for the key.
TEST(SweepPoints, OfACsvFileAreRefusedForAKeyThatNoScenarioHas) {
  write_sweep_file("points.csv", "cluster.nodes,no_such_key\n4,\n");
  EXPECT_THAT(
      error_of(R"("overrides": "points.csv")"),
      HasSubstr("points.csv: found the key \"no_such_key\"; allowed: a key of the scenario"));
}

TEST(SweepPoints, AreRefusedWithTheAxisAndTheValue) {
  EXPECT_THAT(error_of(R"("vary": [ { "key": "plan.tensor_paralel", "values": [1] } ])"),
              HasSubstr("/vary/0/values/0: of plan.tensor_paralel: /plan/tensor_paralel: found an "
                        "unknown key; allowed: \"tensor_parallel\""));
  EXPECT_THAT(error_of(R"("vary": [ { "key": "cluster.nodes", "values": [1, 0] } ])"),
              HasSubstr("/vary/0/values/1: of cluster.nodes: /cluster/nodes: found 0"));
  EXPECT_THAT(error_of(R"("vary": [ { "key": "cluster.node", "values": ["dgx-h100-80g"] } ])"),
              HasSubstr("did you mean \"dgx-h100-80gb\""));
  EXPECT_THAT(error_of(R"("vary": [ { "key": "name.first", "values": [1] } ])"),
              HasSubstr("found \"base\" at name, which has no \"first\""));
  EXPECT_THAT(error_of(R"("vary": [ { "key": "cluster.nodes", "values": [1] },
                                    { "key": "/cluster/nodes", "values": [2] } ])"),
              HasSubstr("/vary/1/key: found \"/cluster/nodes\" twice"));
  EXPECT_THAT(error_of(R"("vary": [ { "key": "cluster.nodes", "from": 1, "to": "2 s", "steps": 2 }
                          ])"),
              HasSubstr("/vary/0/to: found \"2 s\"; allowed: the unit of \"from\""));
  EXPECT_THAT(error_of(R"("vary": [ { "zip": [ { "key": "cluster.nodes", "values": [1, 2] },
                          { "key": "plan.micro_batch", "values": [1] } ] } ])"),
              HasSubstr("/vary/0/zip/1: found 1 values; allowed: 2"));
  EXPECT_THAT(error_of(R"("name": "n")"), HasSubstr("found no \"vary\""));
  EXPECT_THAT(error_of(R"("overrides": "no.csv")"), HasSubstr("does not exist"));
  EXPECT_THAT(error_of(R"("where": ["cluster.node.nics > 1"], "vary": [
                          { "key": "cluster.node", "values": ["dgx-h100-80gb"] } ])"),
              HasSubstr("/where/0: found cluster.node.nics, a part of which varies"));
}

// 101^6 exceeds 10^12.
TEST(SweepPoints, OfATooLargeGridAreRefused) {
  std::string axes;
  for (const char* key : {"cluster.nodes", "training.global_batch", "training.sequence_length",
                          "plan.micro_batch", "plan.tensor_parallel", "plan.pipeline_parallel"}) {
    axes += std::string(axes.empty() ? "" : ",") + R"({ "key": ")" + key +
            R"(", "from": 1, "to": 101, "steps": 101 })";
  }
  EXPECT_THAT(error_of(R"("vary": [)" + axes + "]"),
              HasSubstr("/vary: found more than 1000000000000 points"));
}

std::string sweep_named(std::string_view name) {
  return fmt::format(R"({{ "trainyard": "sweep/1", "name": "{}", "scenario": "scenario.json",
                           "vary": [ {{ "key": "cluster.nodes", "values": [4, 8] }} ] }})",
                     name);
}

std::string scenario_named(std::string_view name) {
  const std::string own = R"("name": "base")";
  std::string text = base_scenario();
  return text.replace(text.find(own), own.size(),
                      fmt::format(R"("trainyard": "scenario/1", "name": "{}")", name));
}

// Replaces the file at once, so that it always exists as a whole.
void replace(const std::string& file, const std::string& text) {
  fs::rename(write_sweep_file("new", text), sweep_folder() / file);
}

// A sweep is called what it or its scenario is called, else as its file is; a result file keeps
// that.
TEST(SweepName, IsThatOfTheFileWhereNothingIsNamed) {
  const auto named = [](std::string scenario) {
    const std::string name = R"("name": "base",)";
    if (const auto at = scenario.find(name); at != std::string::npos)
      scenario.erase(at, name.size());
    return read_sweep(
        write_sweep_file("nodes.json", fmt::format(R"({{ "trainyard": "sweep/1", "scenario": {},
                                        "vary": [ {{ "key": "cluster.nodes", "values": [4] }} ] }})",
                                                   scenario)));
  };
  const auto sweep = named(base_scenario());
  ASSERT_TRUE(sweep) << sweep.error().message;
  EXPECT_EQ(sweep->name, "nodes");
  EXPECT_THAT(sweep->text, HasSubstr(R"("name": "nodes")"));
}

// Another thread replaces sweep and scenario while they are read. Whichever of two texts a sweep
// was made from, the hash beside it is that of this text.
TEST(SweepInputs, HaveTheHashesOfTheTextsThatTheSweepWasMadeOf) {
  replace("scenario.json", scenario_named("a"));
  replace("sweep.json", sweep_named("a"));
  std::jthread somebody([](const std::stop_token& stop) {
    for (bool other = true; !stop.stop_requested(); other = !other) {
      replace("scenario.json", scenario_named(other ? "b" : "a"));
      replace("sweep.json", sweep_named(other ? "b" : "a"));
    }
  });
  for (int i = 0; i < 60; ++i) {
    const auto sweep = read_sweep(sweep_folder() / "sweep.json");
    ASSERT_TRUE(sweep.has_value()) << sweep.error().where << ": " << sweep.error().message;
    ASSERT_EQ(sweep->inputs.at(0).hash, sha256(sweep_named(sweep->name)));
    ASSERT_EQ(sweep->inputs.at(1).hash, sha256(scenario_named(sweep->scenario.name)));
  }
}

}  // namespace
}  // namespace trainyard
