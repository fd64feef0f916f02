// What groups of unlike nodes give a sweep, a life and a comparison: two groups of the same nodes
// are compared with one cluster, and rates and bill are computed by hand.
#include "scenarios/unlike_answer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/cost/estimate.h"
#include "scenarios/question.h"
#include "simulator/life/settings.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;

Scenario with_groups(const std::string& first, const std::string& second,
                     const std::string& more = "", const std::string& model = "llama-3.1-8b") {
  const auto scenario = parse_scenario(fmt::format(R"({{ "trainyard": "scenario/1", "model": "{}",
        "cluster": {{ "groups": [{{ "node": "{}", "nodes": 2 }}, {{ "node": "{}", "nodes": 2 }}] }},
        "training": {{ "global_batch": 128, "sequence_length": 8192, "precision": "bf16",
                       "optimizer": "adamw", "stack": "megatron-core" }}{} }})",
                                                   model, first, second, more),
                                       "test");
  EXPECT_TRUE(scenario.has_value()) << scenario.error().where << scenario.error().message;
  return *scenario;
}

UnlikeAnswer answer_to(const Scenario& scenario) {
  auto answer = answer_of_groups(grouped_job(scenario), scenario, group_options(scenario));
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  return *std::move(answer);
}

// 4 nodes of 8 H100 in both cases, so failures, checkpoints and spares are those of 32 devices.
TEST(UnlikeAnswer, OfLikeNodesLivesAsOneCluster) {
  const Scenario scenario = with_groups("dgx-h100-80gb", "dgx-h100-80gb");
  const UnlikeAnswer answer = answer_to(scenario);
  ASSERT_NE(answer.best.use, GroupUse::alone);
  Cluster cluster = scenario.unlike->groups[0];
  cluster.nodes = 4;
  const PreparedJob whole = prepare({scenario.job.model, cluster, scenario.job.training});
  const auto& [plan, estimate, confirmation] = answer.candidate;
  const LifeSettings found = life_settings(answer.stand_in, plan, estimate.step_time, {}, {});
  const LifeSettings expected = life_settings(whole, plan, estimate.step_time, {}, {});
  EXPECT_EQ(found.devices, 32);
  EXPECT_EQ(found.nodes, expected.nodes);
  EXPECT_EQ(found.interval, expected.interval);
  EXPECT_EQ(found.tiers[0].write, expected.tiers[0].write);
  const Estimate& rates = answer.candidate.estimate;
  EXPECT_NEAR(rates.mfu,
              whole.model_flop / rates.step_time /
                  (32.0 * cluster.device.peak_of(scenario.job.training.precision.layer_gemm)),
              1e-12);
}

// A device draws at most full power, and at least the share of a waiting device
// (model/cost/money.cpp). 16 A100 of 400 W and 16 H100 of 700 W.
TEST(UnlikeAnswer, PaysForTheDevicesOfBothGroups) {
  const Scenario scenario = with_groups("dgx-a100-80gb", "dgx-h100-80gb",
                                        R"(, "price": "3.6 USD/h", "power": { "pue": 1 })");
  const UnlikeAnswer answer = answer_to(scenario);
  ASSERT_NE(answer.best.use, GroupUse::alone);
  const double step = answer.best.step_time.value();
  EXPECT_NEAR(answer.candidate.estimate.cost_per_step->value(), 32 * 1e-3 * step, 1e-9 * step);
  const double most = 16 * (400.0 + 700.0) * step;
  EXPECT_LT(answer.candidate.estimate.energy_per_step->value(), most);
  EXPECT_GT(answer.candidate.estimate.energy_per_step->value(), 0.35 * most);
}

// The bounds of the planner section also hold for the answer and for plans made anew for fewer
// nodes.
TEST(UnlikeAnswer, KeepsToThePlannerSection) {
  const Scenario scenario = with_groups("dgx-a100-80gb", "dgx-h100-80gb",
                                        R"(, "planner": { "tensor_parallel": 8, "micro_batch": 1,
                                                          "recompute": "full" })");
  const UnlikeAnswer answer = answer_to(scenario);
  EXPECT_EQ(answer.candidate.plan.tensor_parallel, 8);
  EXPECT_EQ(answer.candidate.plan.recompute, (Recompute{RecomputeMode::full, 0}));
  const UnlikeAnswer free = answer_to(with_groups("dgx-a100-80gb", "dgx-h100-80gb"));
  EXPECT_GT(answer.best.step_time, free.best.step_time);
  const auto replans = replans_of_groups(grouped_job(scenario), scenario, answer, {4});
  ASSERT_EQ(replans.size(), 1u);
  EXPECT_DOUBLE_EQ(replans[0].speed, 1);
}

// With cost as objective the cheap group may be best alone: at 100 times its price, nothing on the
// other is worth it.
TEST(UnlikeAnswer, IsTheBestByTheObjective) {
  const Scenario scenario =
      with_groups("dgx-a100-80gb", "dgx-h100-80gb", R"(, "price": ["1 USD/h", "100 USD/h"])");
  GroupSearchOptions options = group_options(scenario);
  options.objective = Objective::cost;
  const auto answer = answer_of_groups(grouped_job(scenario), scenario, options);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->best.order, (std::vector<std::size_t>{0}));
  EXPECT_NEAR(answer->candidate.estimate.cost_per_step->value(),
              16 * answer->best.step_time.value() / 3600, 1e-9);
  EXPECT_NE(answer_to(scenario).best.order, answer->best.order);
}

// One group alone is a cluster like any other.
TEST(UnlikeAnswer, OfOneGroupAloneIsThatCluster) {
  const Scenario scenario =
      with_groups("dgx-a100-80gb", "dgx-h100-80gb", R"(, "price": "3.6 USD/h")");
  GroupedJob job = grouped_job(scenario);
  job.cluster.boundary.bandwidth = BytesPerSecond(1e3);  // nothing crosses it in useful time
  const auto answer = answer_of_groups(job, scenario, group_options(scenario));
  ASSERT_TRUE(answer.has_value());
  ASSERT_EQ(answer->best.use, GroupUse::alone);
  const PreparedJob alone =
      prepare({job.model, job.cluster.groups[answer->best.order.at(0)], job.training});
  const Estimate whole = estimate(alone, answer->best.plan);
  const Estimate& found = answer->candidate.estimate;
  EXPECT_EQ(found.step_time, whole.step_time);
  EXPECT_DOUBLE_EQ(found.mfu, whole.mfu);
  EXPECT_DOUBLE_EQ(found.tokens_per_second, whole.tokens_per_second);
  EXPECT_NEAR(*found.cost_per_step / *whole.cost_per_step, 1, 1e-12);
  EXPECT_EQ(found.peak_memory, whole.peak_memory);
}

// On Blackwell, cuDNN before 9.11 has no fused backward pass for latent attention
// (NVIDIA/TransformerEngine, fused_attn.cpp); on Hopper it has one. So each group has its own
// stack, and a group alone is the cluster that a scenario with only this group has.
TEST(UnlikeAnswer, ResolvesAReleaseForEachGroup) {
  const auto scenario_of = [](const std::string& cluster) {
    return parse_scenario(fmt::format(R"({{ "trainyard": "scenario/1", "model": "deepseek-v2-lite",
        "cluster": {}, "training": {{ "global_batch": 64, "sequence_length": 4096,
            "stack": "megatron-core", "release": "25.07" }} }})",
                                      cluster),
                          "test")
        .value();
  };
  const std::string hopper = R"({ "node": "dgx-h100-80gb", "nodes": 1 })";
  const std::string blackwell = R"({ "node": "dgx-b200", "nodes": 1 })";
  const auto grouped = [&](const std::string& first, const std::string& second) {
    const std::string groups = fmt::format(R"({{ "groups": [{}, {}] }})", first, second);
    return plan_groups(grouped_job(scenario_of(groups)));
  };
  const auto alone = [&](const std::string& cluster) {
    const PreparedJob job = prepare(scenario_of(cluster).job);
    return search(job, {.top = 1}, analytic_evaluator(job)).plans.at(0).estimate.step_time;
  };
  const GroupedPlans one = grouped(hopper, blackwell);
  const GroupedPlans other = grouped(blackwell, hopper);
  EXPECT_EQ(one.alone[0]->step_time, alone(hopper));
  EXPECT_EQ(one.alone[1]->step_time, alone(blackwell));
  EXPECT_EQ(other.alone[0]->step_time, one.alone[1]->step_time);
  EXPECT_EQ(other.alone[1]->step_time, one.alone[0]->step_time);
  const auto ratio = [](const std::optional<GroupedPlan>& a, const std::optional<GroupedPlan>& b) {
    return a && b ? a->step_time / b->step_time : 0;
  };
  EXPECT_NEAR(ratio(other.pipeline, one.pipeline), 1, 1e-9);
  EXPECT_NEAR(ratio(other.replicas, one.replicas), 1, 1e-9);
}

TEST(UnlikeAnswer, IsRefusedWithAPlanAndWhereNothingFits) {
  const Scenario planned =
      with_groups("dgx-a100-80gb", "dgx-h100-80gb", R"(, "plan": { "tensor_parallel": 2 })");
  EXPECT_EQ(answer_of_groups(grouped_job(planned), planned, {}).error().where, "/plan");
  const Scenario large = with_groups("dgx-a100-80gb", "dgx-h100-80gb", "", "gpt-1t");
  EXPECT_THAT(answer_of_groups(grouped_job(large), large, {}).error().message,
              HasSubstr("found no plan that fits"));
}

TEST(UnlikeAnswer, SaysWhereThePlannerSectionLeavesNothing) {
  const Scenario scenario =
      with_groups("dgx-a100-80gb", "dgx-h100-80gb", R"(, "planner": { "tensor_parallel": 3 })");
  const auto answer = answer_of_groups(grouped_job(scenario), scenario, group_options(scenario));
  ASSERT_FALSE(answer.has_value());
  EXPECT_THAT(answer.error().message, HasSubstr("allowed: more in the planner section"));
}

// Fewer nodes do less work, and no plan for fewer nodes is faster than the whole.
TEST(UnlikeAnswer, IsPlannedAnewForTheNodesThatAreLeft) {
  const Scenario scenario = with_groups("dgx-a100-80gb", "dgx-h100-80gb");
  const UnlikeAnswer answer = answer_to(scenario);
  const auto replans = replans_of_groups(grouped_job(scenario), scenario, answer, {3, 4});
  ASSERT_EQ(replans.size(), 2u);
  EXPECT_EQ(replans[0].nodes, 3);
  EXPECT_GT(replans[0].speed, 0);
  EXPECT_LT(replans[0].speed, 1);
  EXPECT_DOUBLE_EQ(replans[1].speed, 1);
}

}  // namespace
}  // namespace trainyard
