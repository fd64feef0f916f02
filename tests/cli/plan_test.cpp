// `trainyard plan` as its users see it, beyond the best plan of one size: sizes, rows that look
// alike, searches that are stopped.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program.h"
#include "tests/cli/sweeping.h"

namespace trainyard {
namespace {

std::filesystem::path scenario_of(const std::string& nodes, const std::string& planner) {
  return write_scratch("sizes.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": )" +
                                         nodes + R"( },
    "training": { "global_batch": 256, "sequence_length": 8192, "tokens": 1e12 },
    "price": "2 USD/h", "planner": )" + planner +
                                         " }");
}

TEST(PlanOfSizes, NamesTheFewestDevicesInTime) {
  const std::string file = quoted(scenario_of(
      "1", R"({ "nodes": { "from": 2, "to": 32 }, "deadline": "30 days", "micro_batch": 1 })"));
  const Ran ran = run_trainyard("plan --format json " + file);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& points = json.at("points");
  ASSERT_EQ(points.size(), 5u);  // 2, 4, 8, 16, 32
  constexpr double kLimit = 30 * 86400;
  const PrintedJson* fewest = nullptr;
  for (const PrintedJson& point : points) {
    EXPECT_EQ(point.at("in_time"), point.at("run_time_s") <= kLimit);
    const PrintedJson& best = point.at("best");
    const double alone =
        1e12 / (best.at("tokens_per_second").get<double>() * best.at("goodput").get<double>());
    EXPECT_NEAR(point.at("run_time_s").get<double>(), alone, 1e-6 * alone);
    const double dollars = 2 * point.at("devices").get<double>() * alone / 3600;
    EXPECT_NEAR(point.at("run_cost_usd").get<double>(), dollars, 1e-6 * dollars);
    if (point.at("in_time") == true && fewest == nullptr) fewest = &point;
  }
  ASSERT_NE(fewest, nullptr);
  ASSERT_NE(fewest, &points.front());
  EXPECT_EQ(points.at(json.at("fewest_devices").get<std::size_t>()), *fewest);
  const std::string text = run_trainyard("plan " + file).out;
  EXPECT_NE(text.find("fewest devices "), std::string::npos) << text;
  EXPECT_NE(text.find("within 30.00 days"), std::string::npos) << text;
  EXPECT_NE(text.find("cluster    h100-sxm-80gb · nodes of 8"), std::string::npos) << text;
}

// What 25.07 does otherwise on Blackwell is of latent attention: each network has its own stack,
// whichever the document names first.
TEST(PlanOfSizes, ResolvesAReleaseForEachNetwork) {
  const auto steps_of = [](const std::string& model, const std::string& models) {
    const std::string file = quoted(write_scratch("release.json", R"({
      "trainyard": "scenario/1", "model": ")" + model + R"(",
      "cluster": { "node": "dgx-b200", "nodes": 1 },
      "training": { "global_batch": 64, "sequence_length": 4096, "stack": "megatron-core",
                    "release": "25.07" },
      "planner": { "model": )" + models + R"(, "micro_batch": 1 } })"));
    const Ran ran = run_trainyard("plan --format json " + file);
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::map<std::string, double> steps;
    const PrintedJson json = PrintedJson::parse(ran.out);
    for (const PrintedJson& point : json.at("points")) {
      steps[point.at("model")] = point.at("best").at("step_time_s");
    }
    return steps;
  };
  const auto dense = steps_of("llama-3.1-8b", R"(["llama-3.1-8b"])");
  const auto latent = steps_of("deepseek-v2-lite", R"(["deepseek-v2-lite"])");
  for (const char* models :
       {R"(["llama-3.1-8b", "deepseek-v2-lite"])", R"(["deepseek-v2-lite", "llama-3.1-8b"])"}) {
    for (const char* own : {"llama-3.1-8b", "deepseek-v2-lite"}) {
      const auto steps = steps_of(own, models);
      EXPECT_EQ(steps.at("llama-3.1-8b"), dense.at("llama-3.1-8b")) << own << " " << models;
      EXPECT_EQ(steps.at("deepseek-v2-lite"), latent.at("deepseek-v2-lite"))
          << own << " " << models;
    }
  }
}

TEST(PlanOfSizes, NamesTheLargestNetworkAndTheLongestSequence) {
  const std::filesystem::path file = scenario_of(
      "1", R"({ "model": ["llama-3.1-8b", "llama-3.1-405b", "llama-3.1-70b"], "offload": "none",
                "sequence_length": [8192, 16384], "micro_batch": 1 })");
  const Ran ran = run_trainyard("plan --format json " + quoted(file));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& points = json.at("points");
  ASSERT_EQ(points.size(), 6u);
  // 18 B a parameter on 8 × 80 GiB: 70.6 billion need 1.3 TB.
  EXPECT_EQ(points.at(json.at("largest_model").get<std::size_t>()).at("model"), "llama-3.1-8b");
  EXPECT_EQ(points.at(json.at("longest_sequence").get<std::size_t>()).at("sequence_length"), 16384);
  EXPECT_TRUE(points[2].at("best").is_null());
  const Ran csv = run_trainyard("plan --format csv " + quoted(file));
  EXPECT_EQ(lines_of(csv.out).size(), 7u);
}

TEST(PlanOfSizes, PutsOnTheHostsWhatTheStackCan) {
  const Ran ran = run_trainyard(
      "plan --format json " +
      quoted(scenario_of("1", R"({ "model": ["llama-3.1-8b", "llama-3.1-405b", "llama-3.1-70b"],
                                   "tensor_parallel": 8, "micro_batch": 1 })")));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& points = json.at("points");
  ASSERT_EQ(points.size(), 3u);
  // 6 B a parameter without the optimizer's on 8 × 80 GiB: 70.6 billion need 424 GB, 405 billion
  // 2.4 TB. Its 12 B a parameter need 847 GB of the node's 2 TB.
  EXPECT_EQ(points.at(json.at("largest_model").get<std::size_t>()).at("model"), "llama-3.1-70b");
  const PrintedJson& best = points[2].at("best");
  EXPECT_EQ(best.at("plan").at("offload").at("optimizer"), "host");
  EXPECT_EQ(best.at("plan").at("offload").at("activations"), "none");
  EXPECT_TRUE(points[1].at("best").is_null());
}

TEST(PlanOfSizes, SaysNoWhereNoSizeIsInTime) {
  const Ran ran = run_trainyard(
      "plan " + quoted(scenario_of("1", R"({ "nodes": [1, 2], "deadline": "1 h" })")));
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.out.find("none of these sizes"), std::string::npos) << ran.out;
}

// The plan with least memory may be late where the fastest is in time.
TEST(PlanOfSizes, RefusesADeadlineForPlansThatNeedNotBeFast) {
  const std::string file = quoted(scenario_of("1", R"({ "nodes": [1, 2], "deadline": "1 h" })"));
  for (const char* objective : {"memory", "energy"}) {
    const Ran ran = run_trainyard(std::string("plan --objective ") + objective + " " + file);
    EXPECT_EQ(ran.status, 2) << objective;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_NE(ran.err.find("/planner/deadline"), std::string::npos) << ran.err;
  }
}

TEST(PlanOfSizes, RefusesOptionsOfASinglePlan) {
  const std::string file = quoted(scenario_of("1", R"({ "nodes": [1, 2] })"));
  for (const char* option :
       {"--out a.json", "--explain tp=2", "--confirm 1", "--pareto step-time,memory"}) {
    const Ran ran = run_trainyard(std::string("plan ") + option + " " + file);
    EXPECT_EQ(ran.status, 2) << option;
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  }
}

TEST(Plan, SaysInJsonWhatItSaysInText) {
  const std::string file =
      quoted(scenario_of("2", R"({ "micro_batch": 1, "layers_per_stage": [15, 17] })"));
  const Ran ran = run_trainyard("plan --format json --explain tp=4,pp=2 " + file);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& best = json.at("plans").at(0);
  EXPECT_EQ(best.at("plan").at("layers_per_stage"), PrintedJson({15, 17}));
  EXPECT_EQ(best.at("plan").at("pipeline_parallel"), 2);
  ASSERT_EQ(json.at("baselines").size(), 3u);
  EXPECT_EQ(json.at("baselines").at(0).at("name"), "rule of thumb");
  EXPECT_EQ(json.at("marginal_values").size(), 4u);
  EXPECT_TRUE(json.at("ways_out").empty());
  const PrintedJson& explained = json.at("explained");
  EXPECT_EQ(explained.at("keys").at("tensor_parallel"), "4");
  EXPECT_EQ(explained.at("best").at("plan").at("tensor_parallel"), 4);
  EXPECT_GE(explained.at("best").at("step_time_s"), best.at("step_time_s"));
}

// What the winner has is explained by the winner, with or without a pipeline.
TEST(Plan, ExplainsASchedule) {
  const auto answer_to = [](const std::string& planner, const std::string& keys) {
    const Ran ran = run_trainyard("plan --format json --explain " + keys + " " +
                                  quoted(scenario_of("2", planner)));
    EXPECT_EQ(ran.status, 0) << ran.err;
    return PrintedJson::parse(ran.out);
  };
  const PrintedJson named =
      answer_to(R"({ "schedule": ["1f1b"], "pipeline_parallel": 1 })", "mb=1");
  EXPECT_EQ(named.at("explained").at("best").at("plan").at("pipeline_parallel"), 1);
  const PrintedJson found = answer_to("{}", "schedule=1f1b");
  EXPECT_GT(found.at("explained").at("best").at("plan").at("pipeline_parallel"), 1);
  const Ran ran =
      run_trainyard("plan --explain layers_per_stage=[3,5] " + quoted(scenario_of("2", "{}")));
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("--explain: /layers_per_stage: found 8 layers in all; allowed: 32"),
            std::string::npos)
      << ran.err;
}

// Megatron-LM of 2021 holds whole states on every rank; DeepSpeed's fork of it does not.
TEST(Plan, SaysWhatTheStackHasNoZeroFor) {
  const auto text_of = [](const std::string& planner) {
    const std::string file = quoted(write_scratch("no_zero.json", R"({
      "trainyard": "scenario/1", "model": "llama-3.1-8b",
      "cluster": { "node": "dgx-a100-80gb", "nodes": 1 },
      "training": { "global_batch": 16, "sequence_length": 2048, "stack": "megatron-2021" },
      "planner": )" + planner + " }"));
    const Ran ran = run_trainyard("plan " + file);
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::string text = ran.out;
    text.erase(std::unique(text.begin(), text.end(),
                           [](char a, char b) { return std::isspace(a) && std::isspace(b); }),
               text.end());
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  };
  const std::string own = text_of(R"({ "zero_stage": [0, 1], "micro_batch": 1 })");
  EXPECT_NE(
      own.find("plain FSDP not with megatron-2021, which has no ZeRO; megatron-deepspeed has"),
      std::string::npos)
      << own;
  EXPECT_NE(own.find("ZeRO was not searched, for megatron-2021 has none"), std::string::npos)
      << own;
  EXPECT_EQ(own.find("zero_stage, recompute"), std::string::npos) << own;
  const std::string fork = text_of(R"({ "zero_stage": 1, "micro_batch": 1 })");
  EXPECT_NE(fork.find("megatron-2021 has no ZeRO: the plan runs on megatron-deepspeed"),
            std::string::npos)
      << fork;
  EXPECT_EQ(fork.find("ZeRO was not searched"), std::string::npos) << fork;
}

TEST(Plan, RefusesLayersThatAreNotTheModels) {
  const Ran ran =
      run_trainyard("plan " + quoted(scenario_of("1", R"({ "layers_per_stage": [15, 16] })")));
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("/planner/layers_per_stage: found 31 layers in all; allowed: 32"),
            std::string::npos)
      << ran.err;
}

TEST(PlanOfGroups, RefusesToConfirmWhatIsNotSimulated) {
  const Ran ran = run_trainyard("plan --confirm 1 " + quoted(unlike_groups(2)));
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  EXPECT_NE(ran.err.find("which the simulator does not play"), std::string::npos) << ran.err;
}

// The best plan of `file` as JSON, written to a document of the same folder.
struct WrittenBest {
  PrintedJson best;
  std::filesystem::path document;
};
WrittenBest written_best(const std::filesystem::path& file) {
  WrittenBest written{.best = {}, .document = file.parent_path() / "written.json"};
  std::filesystem::remove(written.document);
  const Ran ran =
      run_trainyard("plan --format json --out " + quoted(written.document) + " " + quoted(file));
  EXPECT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_EQ(json.at("written").at("plan"), "plans/0");
  written.best = json.at("plans").at(0);
  return written;
}

// A pipeline through both groups, and replicas on both: estimate prices what was written.
TEST(PlanOfGroups, WritesAPlanThatEstimateReads) {
  for (const auto& [section, use] :
       {std::pair{R"("pipeline_parallel": 2, "tensor_parallel": 8, "data_parallel": 2)",
                  "pipeline"},
        {R"("data_parallel": 4, "tensor_parallel": 8)", "replicas"}}) {
    const auto [best, document] =
        written_best(unlike_groups(2, fmt::format(R"(, "price": ["1 USD/h", "2 USD/h"],
                                          "planner": {{ {} }})",
                                                  section)));
    EXPECT_EQ(best.at("use"), use);
    const Ran ran = run_trainyard("estimate --format json " + quoted(document));
    ASSERT_EQ(ran.status, 0) << ran.err;
    const PrintedJson priced = PrintedJson::parse(ran.out).at("plans").at(0);
    for (const char* key : {"use", "order", "step_time_s", "step_time_high_s", "boundary_s",
                            "memory_share", "cost_per_step_usd", "energy_per_step_joule"}) {
      EXPECT_EQ(priced.at(key), best.at(key)) << key;
    }
    EXPECT_EQ(priced.at("groups"), best.at("groups"));
    const Ran simulated = run_trainyard("simulate " + quoted(document));
    EXPECT_EQ(simulated.status, 2);
    EXPECT_EQ(lines_of(simulated.err).size(), 1u) << simulated.err;
  }
}

// One group at a hundredth of the other's price: it is the cluster of what is written.
TEST(PlanOfGroups, WritesOneGroupAloneAsAClusterOfItsOwn) {
  const auto file = unlike_groups(2, R"(, "price": ["100 USD/h", "1 USD/h"],
                                          "planner": { "schedule": "interleaved-1f1b",
                                                       "pipeline_parallel": 2 })");
  const auto [best, document] = written_best(file);
  ASSERT_EQ(best.at("use"), "alone");
  const Ran ran = run_trainyard("estimate --format json " + quoted(document));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson priced = PrintedJson::parse(ran.out);
  EXPECT_EQ(priced.at("step_time_s"), best.at("step_time_s"));
  EXPECT_NEAR(priced.at("cost_per_step_usd").get<double>(),
              best.at("cost_per_step_usd").get<double>(), 1e-12);
  EXPECT_EQ(run_trainyard("simulate " + quoted(document)).status, 0);
}

TEST(PlanOfGroups, RefusesAUseThatCannotBe) {
  const auto refused = [](const std::string& sections, const std::string& line) {
    const Ran ran = run_trainyard("estimate " + quoted(unlike_groups(2, sections)));
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
    EXPECT_NE(ran.err.find(line), std::string::npos) << ran.err;
  };
  refused(R"(, "use_of_groups": { "order": [0, 1] })", "/use_of_groups: found without /plan");
  refused(R"(, "plan": {})", "/plan: found a plan with groups of unlike nodes");
  refused(R"(, "plan": {}, "use_of_groups": { "order": [0, 4] })", "/use_of_groups/order/1");
  refused(R"(, "plan": { "tensor_parallel": 8 }, "use_of_groups":
               { "use": "replicas", "order": [0, 1], "micro_batches": [8, 8] })",
          "found 32 sequences in all; allowed: 128");
  const Ran alike = run_trainyard(
      "estimate " +
      quoted(small_scenario(R"(, "plan": {}, "use_of_groups": { "order": [0, 1] })")));
  EXPECT_EQ(alike.status, 2);
  EXPECT_NE(alike.err.find("/use_of_groups: found with one kind of node"), std::string::npos)
      << alike.err;
}

// 8 + 8 replicas of 16 devices each: what does not fit is told, as of one kind of node.
TEST(PlanOfGroups, EstimatesWhatDoesNotFit) {
  const auto file = unlike_groups(2, R"(, "plan": { "tensor_parallel": 1 }, "use_of_groups":
      { "use": "replicas", "order": [0, 1], "micro_batches": [2, 6] })");
  const Ran ran = run_trainyard("estimate " + quoted(file));
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("does not fit"), std::string::npos) << ran.out;
}

// No scenario of one kind of node has another way than the whole of it: beside a plan of step time
// the front has what takes less memory, and ends with the least of it.
TEST(PlanOfGroups, ListsTheFrontOfTwoObjectives) {
  const std::string file = quoted(unlike_groups(2, R"(, "planner": { "tensor_parallel": 8 })"));
  const PrintedJson json =
      PrintedJson::parse(run_trainyard("plan --format json --pareto step-time,memory " + file).out);
  EXPECT_EQ(json.at("second_objective"), "memory");
  const PrintedJson& plans = json.at("plans");
  ASSERT_GT(plans.size(), 1u);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    EXPECT_GT(plans[i].at("step_time_s"), plans[i - 1].at("step_time_s"));
    EXPECT_LT(plans[i].at("memory_share"), plans[i - 1].at("memory_share"));
  }
  const auto best_by = [&file](const std::string& objective, const char* key) {
    const Ran ran = run_trainyard("plan --format json --objective " + objective + " " + file);
    return PrintedJson::parse(ran.out).at("plans").at(0).at(key).get<double>();
  };
  EXPECT_LE(plans.front().at("step_time_s").get<double>(),
            best_by("step-time", "step_time_s") * (1 + 1e-9));
  EXPECT_LE(plans.back().at("memory_share").get<double>(),
            best_by("memory", "memory_share") * (1 + 2e-3));
  const Ran text = run_trainyard("plan --pareto step-time,memory " + file);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("the plans that none found beats in both"), std::string::npos)
      << text.out;
}

TEST(PlanOfGroups, IsRobust) {
  const auto stragglers = [](const char* speed) {
    return quoted(unlike_groups(
        2, fmt::format(R"(, "reliability": {{ "stragglers": {{ "mtbf": "30 days", "speed": {},
                                                             "detection": "1 days" }} }})",
                       speed)));
  };
  const Ran ran = run_trainyard("plan --robust " + stragglers("0.5"));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("at the high end of their intervals"), std::string::npos) << ran.out;
  const PrintedJson json =
      PrintedJson::parse(run_trainyard("plan --robust --format json " + stragglers("0.5")).out);
  for (const PrintedJson& plan : json.at("plans")) {
    EXPECT_GT(plan.at("step_time_high_s"), plan.at("step_time_s"));
    EXPECT_LT(plan.at("step_time_low_s"), plan.at("step_time_s"));
  }
}

TEST(PlanOfGroups, ExplainsKeysWhereNothingFits) {
  const std::string file = quoted(unlike_groups(
      2, R"(, "planner": { "tensor_parallel": 1, "pipeline_parallel": 1, "recompute": "none",
                            "zero_stage": 0 })"));
  const Ran ran = run_trainyard("plan --explain tp=8 " + file);
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("explained      tensor_parallel 8: at its best"), std::string::npos)
      << ran.out;
}

// Replicas and pipelines shard over all: 3 ranks are no group of 2, 4, … or 32.
TEST(PlanOfGroups, NamesTheShardingGroupThatLeavesAWayOut) {
  const Ran ran = run_trainyard(
      "plan --format json " + quoted(unlike_groups(2, R"(, "planner": { "sharding_group": 3 })")));
  const PrintedJson left_out = PrintedJson::parse(ran.out).at("ways_left_out");
  ASSERT_GE(left_out.size(), 2u) << ran.out;
  for (const PrintedJson& way : left_out) {
    if (way.at("use") == "alone") continue;
    EXPECT_EQ(way.at("reason"), "no sharding_group that all groups at work can have is allowed");
  }
}

// A100 has no 8-bit floats (datasheet): of the two it is not the one whose price is missed.
TEST(PlanOfGroups, AsksNoPriceOfWhatNoPlanCanUse) {
  const std::string file = quoted(write_scratch("groups_fp8_price.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "groups": [{ "node": "dgx-a100-80gb", "nodes": 1 },
                            { "node": "dgx-h100-80gb", "nodes": 1 }] },
    "training": { "global_batch": 64, "sequence_length": 4096, "precision": "fp8" } })"));
  const Ran ran = run_trainyard("plan --objective cost " + file);
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("/cluster/groups/1 (dgx-h100-80gb): the device has no price"),
            std::string::npos)
      << ran.err;
}

// The catalog's devices have powers and no prices.
TEST(PlanOfGroups, NamesTheGroupWhosePriceIsNotKnown) {
  const std::string file =
      "'" TRAINYARD_SOURCE "/scenarios/cases/llama-3.1-70b-64-a100-and-64-h100.json'";
  const Ran ran = run_trainyard("plan --objective cost " + file);
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("/cluster/groups/0 (dgx-a100-80gb): the device has no price"),
            std::string::npos)
      << ran.err;
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
}

// 16 A100 at 1 USD an hour and 16 H100 at 100: only what leaves the dear ones out is worth it.
TEST(PlanOfGroups, OrdersByTheObjective) {
  const std::string file = quoted(unlike_groups(2, R"(, "price": ["1 USD/h", "100 USD/h"])"));
  const Ran printed = run_trainyard("plan --format json --objective cost " + file);
  ASSERT_EQ(printed.status, 0) << printed.err;
  const PrintedJson json = PrintedJson::parse(printed.out);
  EXPECT_EQ(json.at("objective"), "cost");
  const PrintedJson& best = json.at("plans").at(0);
  EXPECT_EQ(best.at("use"), "alone");
  EXPECT_EQ(best.at("order").at(0), 0);
  const auto bill = [](const PrintedJson& plan, double dollars_an_hour) {
    return plan.at("step_time_s").get<double>() / 3600 * 16 * dollars_an_hour;
  };
  EXPECT_NEAR(best.at("cost_per_step_usd").get<double>(), bill(best, 1), 1e-9);
  for (const PrintedJson& plan : json.at("plans")) {
    if (plan.at("order").size() != 2) continue;
    EXPECT_NEAR(plan.at("cost_per_step_usd").get<double>(), bill(plan, 101), 1e-6);
  }
  for (const auto& [objective, head] : {std::pair{"cost", "USD/step"},
                                        {"energy", "kWh/step"},
                                        {"memory", "fullest"},
                                        {"goodput", "goodput"}}) {
    const Ran ran = run_trainyard(fmt::format("plan --objective {} {}", objective, file));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find(head), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find(" % higher."), std::string::npos) << ran.out;
  }
}

TEST(PlanOfGroups, KeepsToThePlannerSection) {
  const std::string file = quoted(unlike_groups(
      2, R"(, "planner": { "tensor_parallel": 4, "schedule": ["1f1b"], "context_parallel": 1 })"));
  const PrintedJson json = PrintedJson::parse(run_trainyard("plan --format json " + file).out);
  EXPECT_EQ(json.at("plans").size(), 5u);
  EXPECT_TRUE(json.at("ways_left_out").empty());
  for (const PrintedJson& plan : json.at("plans")) {
    EXPECT_EQ(plan.at("plan").at("tensor_parallel"), 4);
  }
}

// As the section does where it says the same.
TEST(PlanOfGroups, ExplainsKeys) {
  const std::string file = quoted(unlike_groups(2));
  const PrintedJson explained =
      PrintedJson::parse(run_trainyard("plan --format json --explain tp=8,mb=4 " + file).out)
          .at("explained");
  EXPECT_EQ(explained.at("keys").at("tensor_parallel"), "8");
  const PrintedJson bounded = PrintedJson::parse(
      run_trainyard("plan --format json " +
                    quoted(unlike_groups(2, R"(, "planner": { "tensor_parallel": 8,
                                                              "micro_batch": 4 })")))
          .out);
  EXPECT_EQ(explained.at("best"), bounded.at("plans").at(0));
  const Ran none = run_trainyard("plan --explain tp=3 " + file);
  EXPECT_EQ(none.status, 0) << none.err;
  EXPECT_NE(none.out.find("explained      tensor_parallel 3: no plan: a pipeline through"),
            std::string::npos)
      << none.out;
}

TEST(PlanOfGroups, SaysWhichWaysThePlannerSectionLeavesOut) {
  const std::string file =
      quoted(unlike_groups(2, R"(, "planner": { "context_parallel": 2, "micro_batch": 1 })"));
  const Ran ran = run_trainyard("plan " + file);
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::string reason = "the only context_parallel there, 1, is not allowed by the";
  EXPECT_NE(ran.out.find("left out       replicas on several groups: " + reason), std::string::npos)
      << ran.out;
  const PrintedJson json = PrintedJson::parse(run_trainyard("plan --format json " + file).out);
  EXPECT_EQ(json.at("plans").size(), 3u);  // as one cluster, and either alone
  ASSERT_EQ(json.at("ways_left_out").size(), 2u);
  EXPECT_EQ(json.at("ways_left_out").at(0).at("use"), "pipeline");
  const Ran none =
      run_trainyard("plan " + quoted(unlike_groups(2, R"(, "planner": { "tensor_parallel": 3 })")));
  EXPECT_EQ(none.status, 1) << none.out;
  EXPECT_NE(none.out.find("no tensor_parallel that all groups at work can"), std::string::npos)
      << none.out;
  EXPECT_NE(none.out.find("no plan on dgx-h100-80gb alone is legal and allowed"), std::string::npos)
      << none.out;
}

// DeepSeek-V3 on two generations takes seconds from end to end.
std::string large_groups() {
  return quoted(write_scratch("groups.json", R"({
    "trainyard": "scenario/1", "model": "deepseek-v3",
    "cluster": { "groups": [{ "node": "dgx-h100-80gb", "nodes": 512 },
                            { "node": "dgx-b200", "nodes": 512 }] },
    "training": { "global_batch": 15360, "sequence_length": 4096 } })"));
}

// How much is found in a given time is the machine's business; that it is said is not.
void expect_the_best_so_far(const Ran& ran) {
  const PrintedJson json = PrintedJson::parse(ran.out);
  const PrintedJson& search = json.at("search");
  EXPECT_EQ(search.at("complete"), false);
  const PrintedJson& plans = json.at("plans");
  EXPECT_EQ(ran.status, plans.empty() ? 1 : 0) << ran.err;
  const double bound = search.at("step_time_bound_s").get<double>();
  EXPECT_GT(bound, 0);
  const double gap = search.at("gap").get<double>();
  EXPECT_NEAR(gap, plans.empty() ? 1 : 1 - bound / plans.at(0).at("step_time_s").get<double>(),
              1e-9);
}

TEST(PlanOfGroups, PrintsTheBestSoFarAtATimeLimit) {
  expect_the_best_so_far(run_trainyard("plan --format json --time-limit 0.2 " + large_groups()));
}

TEST(PlanOfGroups, PrintsTheBestSoFarWhenInterrupted) {
  const Ran ran =
      run_trainyard("plan --format json " + large_groups(), "timeout --preserve-status -s INT 0.4");
  if (ran.status != 130) return expect_the_best_so_far(ran);
  EXPECT_EQ(ran.out, "") << "nothing was found";
}

// A100 has no 8-bit floats (datasheet).
TEST(PlanOfGroups, SaysWhichDevicesCannotComputeInThePrecision) {
  const std::string file = quoted(write_scratch("groups_fp8.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "groups": [{ "node": "dgx-a100-80gb", "nodes": 2 },
                            { "node": "dgx-a100-80gb", "nodes": 1 },
                            { "node": "dgx-h100-80gb", "nodes": 2 }] },
    "training": { "global_batch": 64, "sequence_length": 4096, "precision": "fp8" } })"));
  const Ran ran = run_trainyard("plan " + file);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find(" a100-sxm-80gb: no plan can use them"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("a100-sxm-80gb, a100-sxm-80gb"), std::string::npos) << ran.out;
  const Ran printed = run_trainyard("plan --format json " + file);
  const PrintedJson json = PrintedJson::parse(printed.out);
  ASSERT_EQ(json.at("left_out").size(), 2u) << printed.out;
  EXPECT_EQ(json.at("left_out").at(1).at("group"), 1);
  EXPECT_EQ(json.at("left_out").at(1).at("name"), "dgx-a100-80gb");
  EXPECT_EQ(json.at("left_out").at(1).at("reason"), "a100-sxm-80gb does not compute in fp8");
  const std::vector<std::string> rows = lines_of(run_trainyard("plan --format csv " + file).out);
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                          [](const std::string& row) {
                            return row.find(",left out,,,dgx-a100-80gb,") != std::string::npos;
                          }),
            2);
}

TEST(PlanOfGroups, ShowsAsManyPlansAsAskedFor) {
  const Ran ran = run_trainyard("plan --format json --top 2 '" TRAINYARD_SOURCE
                                "/scenarios/cases/llama-3.1-70b-64-a100-and-64-h100.json'");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const PrintedJson json = PrintedJson::parse(ran.out);
  EXPECT_EQ(json.at("plans").size(), 2u);
  EXPECT_EQ(json.at("search").at("complete"), true);
}

// The rows of the table of plans, without their numbers.
std::set<std::string> rows_of(const std::string& text, std::size_t expected) {
  std::set<std::string> rows;
  bool in_table = false;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("best plans")) in_table = true;
    if (in_table && line.empty()) break;
    const std::size_t start = line.find_first_not_of(' ');
    if (!in_table || start == std::string::npos || line[start] < '1' || line[start] > '9') continue;
    rows.insert(line.substr(line.find(' ', start)));
  }
  EXPECT_EQ(rows.size(), expected) << text;
  return rows;
}

TEST(PlanTable, TellsAllPlansApart) {
  const std::filesystem::path file = scenario_of(
      "2", R"({ "rank_order": ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"], "tensor_parallel": 2,
                "collective": ["ring", "double-binary-tree"], "context_parallel": [1, 2],
                "offload": ["none", "optimizer"], "micro_batch": [1, 2],
                "sequence_parallel": [true, false] })");
  rows_of(run_trainyard("plan --top 60 " + quoted(file)).out, 60);
}

std::size_t rows_in_front(const std::string& text) {
  std::size_t rows = 0;
  for (const std::string& line : lines_of(text)) {
    const std::size_t start = line.find_first_not_of(' ');
    if (line.starts_with("plan 1")) break;
    if (start != std::string::npos && line[start] >= '1' && line[start] <= '9') ++rows;
  }
  return rows;
}

TEST(PlanTable, LeavesOutPlansOfAFrontThatLookTheSame) {
  const std::string file =
      quoted(scenario_of("2", R"({ "micro_batch": [1, 2], "offload": "none" })"));
  const Ran json = run_trainyard("plan --format json --pareto step-time,memory " + file);
  ASSERT_EQ(json.status, 0) << json.err;
  std::size_t distinct = 0;
  double last = 1e300;
  const PrintedJson all = PrintedJson::parse(json.out).at("plans");
  for (const PrintedJson& plan : all) {
    const double memory = plan.at("peak_memory_bytes");
    if (memory > 0.99 * last) continue;
    last = memory;
    ++distinct;
  }
  ASSERT_LT(distinct, all.size()) << "else nothing is left out";
  const Ran text = run_trainyard("plan --top 2 --pareto step-time,memory " + file);
  EXPECT_EQ(rows_in_front(text.out), distinct) << text.out;
  EXPECT_NE(text.out.find("are in --format json"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\nplan 2  "), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("\nplan 3  "), std::string::npos) << "explained without being asked";
}

TEST(PlanTable, ShowsWhatThePlansAreOrderedBy) {
  const std::string file =
      quoted(scenario_of("1", R"({ "micro_batch": 1, "pipeline_parallel": 1 })"));
  const std::pair<const char*, const char*> heads[] = {{"--objective cost", "USD/step"},
                                                       {"--objective energy", "kWh/step"},
                                                       {"--objective goodput", "goodput"},
                                                       {"--robust", "robust"}};
  for (const auto& [option, head] : heads) {
    const Ran ran = run_trainyard(std::string("plan ") + option + " " + file);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find(head), std::string::npos) << ran.out;
  }
  const Ran plain = run_trainyard("plan " + file);
  for (const auto& [option, head] : heads) {
    EXPECT_EQ(plain.out.find(std::string(head) + "\n"), std::string::npos) << plain.out;
  }
}

// A way out and the last line must not contradict each other.
TEST(Plan, EndsWithTheCheapestWayOutWhereNothingFits) {
  const Ran ran =
      run_trainyard("plan '" TRAINYARD_SOURCE "/scenarios/cases/gpt3-175b-zero-3-on-8-h100.json'");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.out.find("a way out      8 nodes instead of 1"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("The cheapest way out: 8 nodes instead of 1."), std::string::npos);
  EXPECT_EQ(ran.out.find("No single change"), std::string::npos);
}

TEST(Plan, SaysWhyNoPlanIsLegal) {
  const std::filesystem::path file = write_scratch("illegal.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx1-v100", "nodes": 1 },
    "training": { "global_batch": 8, "sequence_length": 2048, "precision": "bf16" } })");
  const Ran ran = run_trainyard("plan '" + file.string() + "'");
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(lines_of(ran.err).size(), 1u) << ran.err;
  EXPECT_NE(ran.err.find("found bf16, which v100-sxm-32gb does not support"), std::string::npos)
      << ran.err;
}

// Bounding an exhaustive space of a job that no device can hold: stopped, it has nothing to show.
TEST(Plan, EndsWith130WhenInterruptedWithNothingFound) {
  const std::filesystem::path file = write_scratch("nothing.json", R"({
    "trainyard": "scenario/1", "model": "deepseek-v3",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 2048 },
    "planner": { "zero_stage": 0, "expert_parallel": 1, "expert_tensor_parallel": 1,
                 "pipeline_parallel": 1, "sharding_group": [1],
                 "rank_order": ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "cp-tp-ep-dp-pp",
                                "cp-tp-ep-pp-dp", "tp-ep-cp-dp-pp", "tp-ep-dp-cp-pp",
                                "ep-tp-cp-dp-pp", "ep-cp-tp-dp-pp"] },
    "training": { "global_batch": 15360, "sequence_length": 4096 } })");
  const std::filesystem::path printed = scratch_folder() / "printed";
  const BackgroundProgram program({TRAINYARD_PROGRAM, "plan", file.string()}, printed);
  EXPECT_TRUE(wait_until([&] { return catches(program.pid(), SIGINT); }));
  program.send(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_EQ(read_text(printed), "");
}

// The pass orders of five plans take a second: 0.3 s are over before, in the search or behind it. A
// day is not.
TEST(Plan, KeepsToItsTimeLimitWhenTheSearchIsDone) {
  const std::string file = quoted(write_scratch("limit.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "planner": { "pipeline_parallel": 8, "virtual_stages": 1 },
    "training": { "global_batch": 4096, "sequence_length": 8192, "stack": "internevo" } })"));
  const Ran cut = run_trainyard("plan --time-limit 0.3 " + file);
  EXPECT_EQ(cut.status, 0) << cut.err;
  const bool in_search = cut.out.find("Stopped after") != std::string::npos;
  EXPECT_NE(in_search, cut.out.find("cut short") != std::string::npos) << cut.out;
  EXPECT_EQ(cut.out.find("1 % more "), std::string::npos) << cut.out;
  const Ran all = run_trainyard("plan --time-limit 86400 --top 1 " + file);
  EXPECT_EQ(all.out.find("cut short"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("1 % more "), std::string::npos) << all.out;
}

// Once the best plan is written, what is left are the pass orders of five plans: seconds.
TEST(Plan, KeepsItsAnswerWhenInterruptedWhileItImprovesIt) {
  const std::filesystem::path file = write_scratch("orders.json", R"({
    "trainyard": "scenario/1", "model": "llama-3.1-8b",
    "cluster": { "node": "dgx-h100-80gb", "nodes": 1 },
    "planner": { "pipeline_parallel": 8, "virtual_stages": 1 },
    "training": { "global_batch": 1024, "sequence_length": 8192, "stack": "internevo" } })");
  const std::filesystem::path printed = scratch_folder() / "printed";
  const std::filesystem::path best = scratch_folder() / "best.json";
  const BackgroundProgram program(
      {TRAINYARD_PROGRAM, "plan", "--format", "json", "--out", best.string(), file.string()},
      printed);
  EXPECT_TRUE(wait_until([&] { return std::filesystem::exists(best); }));
  program.send(SIGINT);
  ASSERT_EQ(program.wait(), 0);
  const PrintedJson json = PrintedJson::parse(read_text(printed));
  EXPECT_EQ(json.at("plans").size(), 5u);
  EXPECT_EQ(json.at("search").at("optimal"), true);
}

}  // namespace
}  // namespace trainyard
