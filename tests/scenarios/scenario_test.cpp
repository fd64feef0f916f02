#include "scenarios/scenario.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "model/schedule/schedule.h"
#include "planner/request.h"
#include "scenarios/fields/documents.h"
#include "scenarios/json/file.h"
#include "scenarios/json/output_file.h"
#include "scenarios/plan_value.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Scenarios : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / fmt::format("trainyard_scenarios.{}", ::getpid());
    fs::create_directories(folder_ / "elsewhere");
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path written(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  // A small job with further sections, such as R"("plan": {})".
  Scenario scenario_with(const std::string& sections,
                         const std::string& stack = "megatron-core") const {
    const auto scenario =
        read_scenario(written("case.json", R"({"trainyard": "scenario/1", "model": "llama-3.1-8b",
                         "cluster": {"node": "dgx-h100-80gb", "nodes": 2},
                         "training": {"global_batch": 64, "sequence_length": 8192, "stack": ")" +
                                               stack + "\"}, " + sections + "}"));
    if (!scenario) throw std::runtime_error(scenario.error().where + scenario.error().message);
    return *scenario;
  }

  fs::path folder_;
};

TEST_F(Scenarios, TakeTheDefaultsOfTheDesign) {
  const Scenario scenario = scenario_with(R"("plan": {})");
  EXPECT_EQ(scenario.name, "case");
  EXPECT_EQ(scenario.job.training.precision.name, "bf16");
  EXPECT_EQ(scenario.job.training.optimizer.name, "adam");
  EXPECT_EQ(scenario.job.training.stack.name, "megatron-core");
  EXPECT_EQ(scenario.plan->micro_batch, 1);
  EXPECT_EQ(scenario.plan->rank_order, "tp-cp-ep-dp-pp");
  EXPECT_FALSE(scenario.plan->data_parallel.has_value());
  EXPECT_FALSE(scenario.plan->zero_stage.has_value());
  EXPECT_FALSE(scenario.measured.has_value());
}

// The collectives of the catalog's A100 are curves of an NVSwitch of 300 GB/s.
TEST_F(Scenarios, SayThatCollectivesWereMeasuredOnOtherLinks) {
  const auto assumed = [this](const std::string& links) {
    const auto scenario =
        read_scenario(written("links.json", R"({"trainyard": "scenario/1", "model": "llama-3.1-8b",
          "cluster": {"device": "a100-sxm-80gb", "devices_per_node": 8, "nodes": 1,
                      "intra_node": )" + links + R"(},
          "training": {"global_batch": 64, "sequence_length": 8192}})"));
    if (!scenario) throw std::runtime_error(scenario.error().where + scenario.error().message);
    return scenario->assumptions;
  };
  EXPECT_THAT(assumed(R"({"kind": "nvswitch", "bandwidth": "300 GB/s"})"), IsEmpty());
  EXPECT_THAT(assumed(R"({"kind": "nvswitch", "bandwidth": "150 GB/s"})"),
              ElementsAre("a100-sxm-80gb's collectives were measured on nvswitch of 300 GB/s: what "
                          "bytes take is scaled to 150 GB/s"));
  EXPECT_THAT(assumed(R"({"kind": "pcie", "bandwidth": "25 GB/s"})"),
              ElementsAre("a100-sxm-80gb's collectives were measured on nvswitch of 300 GB/s: on "
                          "pcie the formulas of the algorithms are used"));
  // A node without a stated latency has 3 us.
  EXPECT_THAT(assumed(R"({"kind": "nvswitch", "bandwidth": "300 GB/s", "latency": "3 us"})"),
              IsEmpty());
  EXPECT_THAT(assumed(R"({"kind": "nvswitch", "bandwidth": "300 GB/s", "latency": "20 us"})"),
              ElementsAre("a100-sxm-80gb's collectives were measured: inside a node their own "
                          "latency counts, not intra_node's 20 us"));
}

// measured/kernels/l40s_nccl.csv, 512 MiB: 1.45 GB/s per device among eight, 20.1 between two.
TEST_F(Scenarios, SayThatATableLostMostOfItsLinks) {
  const auto assumed = [this](int devices) {
    const auto scenario = read_scenario(written(
        "table.json", R"({"trainyard": "scenario/1", "model": "llama-3.1-8b", "cluster": {
          "device": "l40s-48gb", "nodes": 1, "intra_node": {"kind": "pcie", "bandwidth": "32 GB/s"},
          "devices_per_node": )" +
                          std::to_string(devices) +
                          R"(}, "training": {"global_batch": 64, "sequence_length": 8192}})"));
    if (!scenario) throw std::runtime_error(scenario.error().where + scenario.error().message);
    return scenario->assumptions;
  };
  EXPECT_THAT(assumed(8),
              ElementsAre("l40s-48gb's all-reduce among 8 is as one machine had it: 1.5 GB/s a "
                          "device, on links of 32 GB/s; `trainyard fit` takes a table of yours"));
  EXPECT_THAT(assumed(4), IsEmpty());
}

// Without inter_node, the node's own NICs are on a non-blocking rail-optimised fat tree (design
// §3).
TEST_F(Scenarios, ClusterOfNodesUsesTheNodesOwnNics) {
  const InterNode inter = scenario_with(R"("price": "2.99 USD/h")").job.cluster.inter;
  EXPECT_EQ(inter.kind, InterNodeKind::rail);
  EXPECT_EQ(inter.oversubscription, 1);
  EXPECT_EQ(inter.nics_per_node, 8);
  EXPECT_EQ(inter.bandwidth, BytesPerSecond(50e9));
}

TEST_F(Scenarios, FabricReplacesWhatItNames) {
  const auto scenario =
      read_scenario(written("fabric.json",
                            R"({"trainyard": "scenario/1", "model": "llama-3.1-8b",
          "cluster": {"node": "gb200-nvl72", "nodes": 36,
                      "fabric": {"kind": "fat-tree", "oversubscription": 2}},
          "training": {"global_batch": 64, "sequence_length": 8192}})"));
  ASSERT_TRUE(scenario.has_value());
  const Cluster& cluster = scenario->job.cluster;
  EXPECT_EQ(cluster.inter.kind, InterNodeKind::fat_tree);
  EXPECT_EQ(cluster.inter.oversubscription, 2);
  EXPECT_EQ(cluster.inter.nics_per_node, 4);
  EXPECT_EQ(cluster.nvlink_domain, 72);
  EXPECT_EQ(cluster.devices(), 144);
}

TEST_F(Scenarios, FabricsThatAreNoTreeAreReadByNameAndByPath) {
  const auto cluster_with = [&](int nodes, const std::string& fabric) {
    const auto scenario = read_scenario(
        written("fabric.json", fmt::format(R"({{"trainyard": "scenario/1", "model": "llama-3.1-8b",
          "cluster": {{"node": "dgx-h100-80gb", "nodes": {}, "fabric": "{}"}},
          "training": {{"global_batch": 64, "sequence_length": 8192}}}})",
                                           nodes, fabric)));
    EXPECT_TRUE(scenario.has_value()) << scenario.error().where << scenario.error().message;
    return scenario ? scenario->job.cluster : Cluster{};
  };
  const fs::path good = source_folder() / "tests" / "scenarios" / "good";
  EXPECT_EQ(cluster_with(64, "dragonfly").inter.leaves_per_group, 32);
  EXPECT_EQ(cluster_with(64, "torus-3d").inter.routing, FabricRouting::static_paths);
  EXPECT_EQ(cluster_with(32, (good / "torus.json").string()).inter.dimensions,
            (std::vector{4, 4, 2}));
  EXPECT_EQ(cluster_with(32, (good / "dragonfly.json").string()).inter.routing,
            FabricRouting::valiant);
  const InterNode drawn = cluster_with(4, (good / "drawn_fabric.json").string()).inter;
  ASSERT_EQ(drawn.links.size(), 8U);
  EXPECT_EQ(drawn.switches[2], "spine-0");
  EXPECT_EQ(drawn.links[2].from, (FabricEnd{false, 1}));
  EXPECT_EQ(drawn.links[2].to, (FabricEnd{true, 2}));
  EXPECT_EQ(drawn.links[7].bandwidth, BytesPerSecond(100e9));
}

// 8 NICs of 200 and of 400 Gbit/s for 8 devices: 25 GB/s per device on the narrower side, of which
// 85 %.
TEST_F(Scenarios, MayHaveTwoGroupsOfUnlikeNodes) {
  const auto with_groups = [&](const std::string& more) {
    return read_scenario(written("groups.json", fmt::format(R"({{"trainyard": "scenario/1",
          "model": "llama-3.1-8b",
          "cluster": {{"groups": [{{"node": "dgx-a100-80gb", "nodes": 4}},
                                  {{"node": "dgx-h100-80gb", "nodes": 2}}]{}}},
          "training": {{"global_batch": 64, "sequence_length": 8192}}}})",
                                                            more)));
  };
  const auto scenario = with_groups("");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  ASSERT_TRUE(scenario->unlike);
  EXPECT_EQ(scenario->unlike->groups[0].devices(), 32);
  EXPECT_EQ(scenario->unlike->groups[1].devices(), 16);
  EXPECT_NEAR(boundary_between(*scenario->unlike, 0, 1).bandwidth.value(), 0.85 * 25e9, 1);
  EXPECT_EQ(check_like_nodes(*scenario).error().where, "/cluster/groups");
  const auto named =
      with_groups(R"(, "boundary_bandwidth": "5 GB/s", "boundary_latency": "20 us")");
  ASSERT_TRUE(named.has_value()) << named.error().message;
  EXPECT_EQ(named->unlike->boundary.bandwidth, BytesPerSecond(5e9));
  EXPECT_EQ(named->unlike->boundary.latency, Seconds(20e-6));
}

// 3 · 8 devices; the V100 node's NICs are the narrowest (4 of 100 Gbit/s for 8 devices, 85 %).
TEST_F(Scenarios, MayHaveThreeGroupsOfUnlikeNodesAndNoMoreThanFour) {
  const auto with_groups = [&](int a100) {
    std::string groups =
        R"({"node": "dgx1-v100", "nodes": 1}, {"node": "dgx-h100-80gb", "nodes": 1})";
    for (int i = 0; i < a100; ++i) groups += R"(, {"node": "dgx-a100-80gb", "nodes": 1})";
    return read_scenario(written("groups.json", fmt::format(R"({{"trainyard": "scenario/1",
          "model": "llama-3.1-8b", "cluster": {{"groups": [{}]}},
          "training": {{"global_batch": 64, "sequence_length": 8192}}}})",
                                                            groups)));
  };
  const auto scenario = with_groups(1);
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  ASSERT_EQ(scenario->unlike->groups.size(), 3U);
  EXPECT_LT(boundary_between(*scenario->unlike, 0, 1).bandwidth,
            boundary_between(*scenario->unlike, 1, 2).bandwidth);
  EXPECT_TRUE(with_groups(2).has_value());
  const auto five = with_groups(3);
  ASSERT_FALSE(five.has_value());
  EXPECT_THAT(five.error().where, testing::HasSubstr("/cluster/groups"));
  EXPECT_THAT(five.error().message,
              testing::HasSubstr("found a list of 5; allowed: a list of 2 to 4"));
}

TEST_F(Scenarios, PriceAndPowerAreOfTheCluster) {
  const Scenario scenario = scenario_with(
      R"("price": "3.6 USD/h", "power": {"device": "650 W", "pue": 1.1,
          "carbon_intensity": "360 gCO2/kWh"})");
  EXPECT_EQ(scenario.job.cluster.device.price, DollarsPerSecond(0.001));
  EXPECT_EQ(scenario.job.cluster.device.power, Watts(650));
  EXPECT_EQ(scenario.job.cluster.pue, 1.1);
  EXPECT_DOUBLE_EQ(scenario.carbon_intensity.value(), 1e-4);
}

TEST_F(Scenarios, PlannerTakesAValueOrAList) {
  const SearchSpace space = scenario_with(
                                R"("planner": {"tensor_parallel": [1, 2, 8], "zero_stage": 1,
          "schedule": "1f1b", "recompute": ["none", "full"]})")
                                .space;
  EXPECT_THAT(space.tensor_parallel.values, ElementsAre(1, 2, 8));
  EXPECT_THAT(space.zero_stage.values, ElementsAre(1));
  EXPECT_THAT(space.schedule, ElementsAre("1f1b"));
  EXPECT_THAT(space.recompute,
              ElementsAre(RecomputeChoice{}, RecomputeChoice{{RecomputeMode::full, 0}, {}}));
  EXPECT_TRUE(space.micro_batch.empty());
}

TEST_F(Scenarios, PlannerTakesBounds) {
  const SearchSpace space = scenario_with(R"("planner": {"tensor_parallel": {"from": 2, "to": 8},
          "data_parallel": {"from": 4}, "micro_batch": {"to": 3}, "zero_stage": {"to": 0}})")
                                .space;
  EXPECT_EQ(space.tensor_parallel, Numbers::between(2, 8));
  EXPECT_FALSE(space.data_parallel.has(3));
  EXPECT_TRUE(space.data_parallel.has(4) && space.data_parallel.has(1'000'000));
  EXPECT_TRUE(space.micro_batch.has(1) && space.micro_batch.has(3));
  EXPECT_FALSE(space.micro_batch.has(4));
  EXPECT_TRUE(space.zero_stage.has(0));
  EXPECT_FALSE(space.zero_stage.has(1));
}

TEST_F(Scenarios, PlannerTakesLayersAndStagesOfRecomputation) {
  const Recompute full{RecomputeMode::full, 0}, two{RecomputeMode::full, 2};
  const auto choices = [this](const char* text) {
    return scenario_with(std::string(R"("planner": {"recompute": )") + text + "}").space.recompute;
  };
  EXPECT_THAT(choices(R"({"full": 2})"), ElementsAre(RecomputeChoice{two, {}}));
  EXPECT_THAT(
      choices(R"(["selective", {"full": 2}])"),
      ElementsAre(RecomputeChoice{{RecomputeMode::selective, 0}, {}}, RecomputeChoice{two, {}}));
  EXPECT_THAT(choices(R"([["full", {"full": 2}, "none"], "none"])"),
              ElementsAre(RecomputeChoice{{}, {full, two, {}}}, RecomputeChoice{}));
}

TEST_F(Scenarios, RecomputeIsAWordOrANumberOfLayers) {
  EXPECT_EQ(scenario_with(R"("plan": {"recompute": "auto"})").plan->recompute,
            (Recompute{RecomputeMode::automatic, 0}));
  EXPECT_EQ(scenario_with(R"("plan": {"recompute": {"full": 4}})").plan->recompute,
            (Recompute{RecomputeMode::full, 4}));
  EXPECT_THAT(scenario_with(R"("plan": {"recompute": ["none", {"full": 2}, "selective"]})")
                  .plan->recompute_per_stage,
              ElementsAre(Recompute{}, Recompute{RecomputeMode::full, 2},
                          Recompute{RecomputeMode::selective, 0}));
}

// megatron-core's document: the recipes of the NeMo framework's releases have gradients of 16 bits.
TEST_F(Scenarios, TheStackIsOfTheReleaseThatWasMeasured) {
  const auto gradient = [&](const char* text) {
    return prepare(scenario_with(text).job).job.training.stack.gradient_bytes;
  };
  EXPECT_EQ(gradient(R"("measured": {"step_time": "2 s", "release": "25.04.01"})"), 2);
  EXPECT_EQ(gradient(R"("measured": {"step_time": "2 s", "release": "main"})"), 4);
  EXPECT_EQ(gradient(R"("measured": {"step_time": "2 s"})"), 4);
}

// On Blackwell, cuDNN before 9.11 has no fused backward pass for heads of 192 and 128 elements
// (NVIDIA/TransformerEngine, fused_attn.cpp). On Hopper, and for other heads, it has one.
TEST_F(Scenarios, ChooseAReleaseForTheDeviceAndTheNetwork) {
  const auto fused = [&](const char* model, const char* node, const char* release) {
    const auto scenario = read_scenario(
        written("case.json", fmt::format(R"({{"trainyard": "scenario/1", "model": "{}",
                         "cluster": {{"node": "{}", "nodes": 64}},
                         "training": {{"global_batch": 2048, "sequence_length": 4096,
                                      "stack": "megatron-core", "release": "{}"}}}})",
                                         model, node, release)));
    if (!scenario) throw std::runtime_error(scenario.error().where + scenario.error().message);
    return prepare(scenario->job).job.training.stack.flash_attention;
  };
  EXPECT_FALSE(fused("deepseek-v3", "gb200-nvl72", "25.07"));
  EXPECT_TRUE(fused("deepseek-v3", "gb200-nvl72", "25.09"));
  EXPECT_TRUE(fused("deepseek-v3", "dgx-h100-80gb", "25.07"));
  EXPECT_TRUE(fused("llama-3.1-8b", "gb200-nvl72", "25.07"));
}

// Megatron-LM of 2021 had whole optimizer states on every rank; its fork with DeepSpeed shards
// them.
TEST_F(Scenarios, APlanWithZeroRunsOnTheForkThatHasIt) {
  const auto stack_of = [this](const std::string& sections) {
    return scenario_with(sections, "megatron-2021").job.training.stack.name;
  };
  EXPECT_EQ(stack_of(R"("plan": {})"), "megatron-2021");
  EXPECT_EQ(stack_of(R"("plan": { "zero_stage": 0 })"), "megatron-2021");
  EXPECT_EQ(stack_of(R"("plan": { "zero_stage": 1 })"), "megatron-deepspeed");
  EXPECT_EQ(stack_of(R"("plan": { "sharding_group": 2 })"), "megatron-deepspeed");
  EXPECT_EQ(stack_of(R"("planner": { "zero_stage": [0, 1] })"), "megatron-2021");
  EXPECT_EQ(stack_of(R"("planner": { "zero_stage": [1, 2] })"), "megatron-deepspeed");
  const Scenario forked = scenario_with(R"("plan": { "zero_stage": 1 })", "megatron-2021");
  EXPECT_THAT(forked.assumptions,
              ElementsAre("megatron-2021 has no ZeRO: the plan runs on megatron-deepspeed"));
  EXPECT_EQ(scenario_with(R"("plan": { "zero_stage": 1 })").job.training.stack.name,
            "megatron-core");
}

// All forms give the same 2 s: 64 · 8,192 tokens on 16 devices.
TEST_F(Scenarios, MeasuredThroughputInAnyFormIsAStepTime) {
  const Scenario direct = scenario_with(R"("measured": {"step_time": "2 s"})");
  EXPECT_EQ(measured_step_time(direct), Seconds(2));
  const Scenario tokens = scenario_with(R"("measured": {"tokens_per_second_per_device": 16384})");
  EXPECT_DOUBLE_EQ(measured_step_time(tokens)->value(), 2);
  const double flop = model_flop(tokens.job.model, tokens.job.training).value();
  const Scenario rate = scenario_with(
      fmt::format(R"("measured": {{"tflops_per_device": {}}})", flop / 16 / 2 * 1e-12));
  EXPECT_DOUBLE_EQ(measured_step_time(rate)->value(), 2);
  const Scenario mfu =
      scenario_with(fmt::format(R"("measured": {{"mfu": {}}})", flop / 16 / 2 / 989e12));
  EXPECT_DOUBLE_EQ(measured_step_time(mfu)->value(), 2);
}

TEST_F(Scenarios, ListIsReadInItsOrderAndAnErrorNamesTheRow) {
  const std::string row = R"({"trainyard": "scenario/1", "name": "NAME", "model": "llama-3.1-8b",
      "cluster": {"node": "dgx-h100-80gb", "nodes": NODES},
      "training": {"global_batch": 64, "sequence_length": 8192}})";
  const auto with = [&](std::string name, std::string nodes) {
    std::string text = row;
    text.replace(text.find("NAME"), 4, name);
    return text.replace(text.find("NODES"), 5, nodes);
  };
  const auto list =
      read_scenarios(written("list.json", fmt::format("[{}, {}]", with("a", "1"), with("b", "2"))));
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->at(1).name, "b");
  const auto bad =
      read_scenarios(written("list.json", fmt::format("[{}, {}]", with("a", "1"), with("b", "0"))));
  EXPECT_TRUE(bad.error().where.ends_with("list.json: /1/cluster/nodes")) << bad.error().where;
  EXPECT_FALSE(read_scenarios(written("list.json", "[]")).has_value());
}

// A plan stays the same from plan to document to request to plan.
class PlanDocuments : public Scenarios {
 protected:
  void expect_round_trip(const std::string& plan_text,
                         const std::string& stack = "megatron-core") const {
    const Scenario scenario = scenario_with("\"plan\": " + plan_text, stack);
    const Job& job = scenario.job;
    const auto plan = make_plan(*scenario.plan, job.model, job.cluster, job.training);
    ASSERT_TRUE(plan.has_value()) << plan_text << plan.error().where << plan.error().message;
    const auto text = scenario_with_plan(folder_ / "case.json", *plan);
    ASSERT_TRUE(text.has_value()) << text.error().message;
    const auto again = read_scenario(written("again.json", *text));
    ASSERT_TRUE(again.has_value()) << again.error().where << again.error().message;
    const auto same = make_plan(*again->plan, job.model, job.cluster, job.training);
    ASSERT_TRUE(same.has_value()) << same.error().where << same.error().message;
    EXPECT_EQ(plan_value(*same), plan_value(*plan)) << plan_text;
  }
};

TEST_F(PlanDocuments, ReadBackToTheSamePlan) {
  expect_round_trip("{}");
  expect_round_trip(R"({"tensor_parallel": 8, "recompute": "selective"})");
  expect_round_trip(R"({"tensor_parallel": 2, "pipeline_parallel": 4, "virtual_stages": 2,
                        "recompute": {"full": 2}, "overlap": {"tensor_parallel": false}})");
  expect_round_trip(R"({"context_parallel": 2, "context_parallel_algorithm": "all-gather",
                        "zero_stage": 3, "sharding_group": 8, "load_imbalance": 1.5,
                        "capacity_factor": 1.25, "rank_order": "tp-cp-ep-pp-dp",
                        "collective": "ring", "optimizer_barrier": false,
                        "offload": {"optimizer": "host"}})");
  expect_round_trip(R"({"pipeline_parallel": 2, "layers_per_stage": [17, 15],
                        "schedule": "gpipe", "micro_batch": 2})",
                    "ideal");
  expect_round_trip(R"({"pipeline_parallel": 4,
                        "recompute": [{"full": 3}, "full", "selective", "none"]})");
}

// A schedule beyond those that the stack names is refused; Megatron-Core runs no zero-bubble
// schedule.
TEST_F(Scenarios, APlanHasAScheduleThatItsStackRuns) {
  const auto refusal = [&](const std::string& stack) {
    const Scenario scenario =
        scenario_with(R"("plan": {"pipeline_parallel": 2, "schedule": "zb-v"})", stack);
    const Job& job = scenario.job;
    const auto plan = make_plan(*scenario.plan, job.model, job.cluster, job.training);
    return plan ? "legal" : plan.error().message;
  };
  EXPECT_EQ(refusal("megatron-core"),
            "found zb-v, which megatron-core does not run, allowed 1f1b, interleaved-1f1b");
  EXPECT_EQ(refusal("megatron-2022"), "legal");
  EXPECT_EQ(refusal("ideal"), "legal");
}

TEST_F(Scenarios, PlanIsFilledInPlaceAndTheOrderOfKeysStays) {
  const Scenario scenario = scenario_with(R"("plan": {}, "price": "1 USD/h")");
  const Job& job = scenario.job;
  const Plan plan = make_plan({}, job.model, job.cluster, job.training).value();
  const std::string text = scenario_with_plan(folder_ / "case.json", plan).value();
  const std::size_t training = text.find("\"training\""), filled = text.find("\"plan\""),
                    price = text.find("\"price\"");
  EXPECT_LT(training, filled);
  EXPECT_LT(filled, price);
  EXPECT_NE(text.find("\"data_parallel\": 16"), std::string::npos);
}

TEST_F(Scenarios, PlanWrittenElsewhereStillFindsItsReferences) {
  const fs::path example =
      source_folder() / "scenarios" / "examples" / "llama-3.1-405b-2048-h100.json";
  const Scenario scenario = read_scenario(example).value();
  const Job& job = scenario.job;
  const Plan plan = make_plan({.tensor_parallel = 8, .pipeline_parallel = 16}, job.model,
                              job.cluster, job.training)
                        .value();
  const fs::path out = folder_ / "elsewhere" / "out.json";
  ASSERT_TRUE(write_file(out, scenario_with_plan(example, plan, out).value()).has_value());
  const auto again = read_scenario(out);
  ASSERT_TRUE(again.has_value()) << again.error().where << again.error().message;
  EXPECT_EQ(again->job.model.layers, 126);
  EXPECT_EQ(again->plan->pipeline_parallel, 16);
}

// 405,853,388,800 parameters (handbook §2); 2,048 devices; 2.99 USD an hour and device.
TEST(Examples, LlamaOn2048H100IsWhatItsNameSays) {
  const auto scenario =
      read_scenario(source_folder() / "scenarios" / "examples" / "llama-3.1-405b-2048-h100.json");
  ASSERT_TRUE(scenario.has_value());
  EXPECT_EQ(parameter_count(scenario->job.model, 8192), 405'853'388'800);
  EXPECT_EQ(scenario->job.cluster.devices(), 2048);
  EXPECT_DOUBLE_EQ(scenario->job.cluster.device.price->value() * 3600, 2.99);
  EXPECT_TRUE(scenario->assumptions.empty());
}

}  // namespace
}  // namespace trainyard
