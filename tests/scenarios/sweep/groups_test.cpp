// Sweeps over clusters of unlike nodes: every point is compared with the planner's own answer.
#include "planner/heterogeneous/groups.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/sweep/answer.h"
#include "scenarios/sweep/report/report.h"
#include "tests/scenarios/sweep/sweeps.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string groups_of(int old_nodes) {
  return fmt::format(R"({{ "groups": [{{ "node": "dgx-a100-80gb", "nodes": {} }},
                                      {{ "node": "dgx-h100-80gb", "nodes": 2 }}] }})",
                     old_nodes);
}

std::string scenario_of(const std::string& cluster, const std::string& more = "") {
  return fmt::format(R"({{ "model": "llama-3.1-8b", "cluster": {},
      "training": {{ "global_batch": 128, "sequence_length": 8192, "precision": "bf16",
                     "optimizer": "adamw", "stack": "megatron-core" }},
      "run": {{ "duration": "30 days", "runs": 10 }}{} }})",
                     cluster, more);
}

Expected<Sweep> sweep_of(const std::string& scenario, const std::string& keys) {
  return read_sweep(write_sweep_file(
      "groups.json",
      fmt::format(R"({{ "trainyard": "sweep/1", "scenario": {}, {} }})", scenario, keys)));
}

// The planner's answer to the same scenario in a file of its own.
GroupedPlan planned(int old_nodes) {
  const auto scenario = read_scenario(
      write_sweep_file("point.json", fmt::format(R"({{ "trainyard": "scenario/1", {})",
                                                 scenario_of(groups_of(old_nodes)).substr(1))));
  return in_order(plan_groups({scenario->job.model, scenario->job.training, *scenario->unlike}))
      .front();
}

const std::string kOldNodes = R"("vary": [{ "key": "cluster.groups.0.nodes", "values": [1, 4] }])";

TEST(SweepOfGroups, AnswersWithThePlannersBestPlan) {
  for (const char* evaluate : {"estimate", "plan"}) {
    const auto sweep = sweep_of(scenario_of(groups_of(2)),
                                fmt::format(R"("evaluate": "{}", )", evaluate) + kOldNodes);
    ASSERT_TRUE(sweep.has_value()) << sweep.error().message;
    PointAnswerer answerer(*sweep);
    PointRow row;
    for (const auto& [point, nodes] : {std::pair{0, 1}, {1, 4}}) {
      ASSERT_TRUE(answerer.answer(point, row));
      EXPECT_EQ(row.status, PointStatus::done) << row.note;
      EXPECT_EQ(row.figure("step_time_s"), planned(nodes).step_time.value());
      EXPECT_GE(row.figure("devices"), 16);
      EXPECT_TRUE(std::isnan(row.figure("bubble_s")));
      EXPECT_THAT(row.plan, HasSubstr("\"groups\":[{"));
    }
  }
}

// Keys other than the cluster are varied as usual, including those of a cluster of like nodes.
TEST(SweepOfGroups, GoesFromOneKindOfNodesToTwo) {
  const auto sweep = sweep_of(
      scenario_of(R"({ "node": "dgx-h100-80gb", "nodes": 2 })"),
      fmt::format(R"("vary": [{{ "key": "cluster", "values": [{}, {{ "node": "dgx-h100-80gb",
                  "nodes": 2 }}] }}])",
                  groups_of(2)));
  ASSERT_TRUE(sweep.has_value()) << sweep.error().message;
  PointAnswerer answerer(*sweep);
  PointRow mixed, alike;
  ASSERT_TRUE(answerer.answer(0, mixed) && answerer.answer(1, alike));
  EXPECT_EQ(mixed.figure("step_time_s"), planned(2).step_time.value()) << mixed.note;
  EXPECT_GT(alike.figure("step_time_s"), mixed.figure("step_time_s")) << alike.note;
  EXPECT_FALSE(std::isnan(alike.figure("bubble_s")));
}

// 8 × (n + 2) devices; the mean time between failures follows in proportion.
TEST(SweepOfGroups, LivesOnBothGroups) {
  const auto sweep = sweep_of(
      scenario_of(groups_of(2), R"(, "reliability": { "device_mtbf": "96 days", "spares": 20 })"),
      R"("evaluate": "goodput", )" + kOldNodes);
  ASSERT_TRUE(sweep.has_value()) << sweep.error().message;
  PointAnswerer answerer(*sweep);
  PointRow row;
  ASSERT_TRUE(answerer.answer(1, row));
  EXPECT_EQ(row.figure("devices"), 48) << row.note;
  EXPECT_NEAR(row.figure("mtbf_s"), 2 * 86400.0, 1e-6);
  EXPECT_NEAR(row.figure("interruptions"), 15, 4);
  EXPECT_NEAR(row.figure("goodput"), row.figure("closed_form_goodput"), 0.02);
}

TEST(SweepOfGroups, RefusesWhatOnlyLikeNodesHave) {
  const auto refusal = [](const std::string& more, const std::string& keys) {
    const auto sweep = sweep_of(scenario_of(groups_of(2), more), keys + kOldNodes);
    return sweep ? "accepted" : sweep.error().where + ": " + sweep.error().message;
  };
  EXPECT_THAT(
      refusal("", R"("evaluate": "simulate", )"),
      HasSubstr("/evaluate: found simulate with groups of unlike nodes; allowed: estimate"));
  EXPECT_THAT(refusal("", R"("evaluate": "run", )"), HasSubstr("/evaluate: found run"));
  EXPECT_THAT(refusal(R"(, "plan": { "tensor_parallel": 2 })", ""), HasSubstr("/scenario/plan"));
}

// A100 at 400 W and H100 at 700 W: with energy as objective the plan is another one, or the same.
TEST(SweepOfGroups, AnswersByTheObjective) {
  const auto energy_by = [](const std::string& objective) {
    const auto sweep =
        sweep_of(scenario_of(groups_of(2)),
                 fmt::format(R"("evaluate": "plan", "objective": "{}", )", objective) + kOldNodes);
    EXPECT_TRUE(sweep.has_value()) << sweep.error().message;
    PointAnswerer answerer(*sweep);
    PointRow row;
    EXPECT_TRUE(answerer.answer(1, row));
    EXPECT_EQ(row.status, PointStatus::done) << row.note;
    return std::pair(row.figure("energy_per_step_joule"), row.figure("step_time_s"));
  };
  const auto [energy, step] = energy_by("energy");
  const auto [energy_of_fastest, fastest] = energy_by("step-time");
  EXPECT_LT(energy, energy_of_fastest);
  EXPECT_GT(step, fastest);
}

TEST(SweepOfGroups, IsReportedByWhatEachGroupDoes) {
  const auto sweep = sweep_of(scenario_of(groups_of(2)), kOldNodes);
  ASSERT_TRUE(sweep.has_value()) << sweep.error().message;
  const fs::path file = sweep_folder() / "groups.sqlite";
  run(*sweep, file);
  const auto report = SweepReport::open(file);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  const auto strategies = (*report)->strategies([](const ReportedPoint& point) {
    EXPECT_THAT(point.strategy, StartsWith("unlike groups, "));
    EXPECT_THAT(point.plan, HasSubstr("devices of dgx-h100-80gb: DP "));
    EXPECT_FALSE(point.plain || point.rule);  // there is no such plan for two groups
  });
  EXPECT_TRUE(strategies.has_value());
}

}  // namespace
}  // namespace trainyard
