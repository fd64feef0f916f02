#include <gtest/gtest.h>

#include "scenarios/json/json_document.h"
#include "scenarios/scenario.h"
#include "scenarios/write/estimate.h"
#include "scenarios/write/plan.h"
#include "scenarios/write/validation.h"
#include "tests/scenarios/test_folder.h"

namespace trainyard {
namespace {

// The example with a legal plan: 2,048 devices = 8 · 16 · 16, and 126 = 16 · 8 − 2 layers.
struct Priced {
  Scenario scenario =
      read_scenario(source_folder() / "scenarios" / "examples" / "llama-3.1-405b-2048-h100.json")
          .value();
  PreparedJob job = prepare(scenario.job);
  Plan plan = make_plan({.tensor_parallel = 8,
                         .pipeline_parallel = 16,
                         .virtual_stages = 8,
                         .recompute = {RecomputeMode::selective, 0}},
                        scenario.job.model, scenario.job.cluster, scenario.job.training)
                  .value();
  Estimate estimated = estimate(job, plan);

  Json json() const { return Json::parse(estimate_json(scenario, job, plan, estimated)); }
};

// Design §4 lists these keys.
TEST(EstimateJson, HasEveryKeyOfTheContract) {
  const Json json = Priced().json();
  for (const char* key :
       {"step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_second",
        "tokens_per_second_per_device", "model_tflops_per_device", "mfu", "mfu_bf16", "hfu",
        "parameters", "active_parameters", "peak_allocated_bytes", "peak_reserved_bytes",
        "peak_memory_bytes", "peak_memory_low_bytes", "peak_memory_high_bytes", "cost_per_step_usd",
        "energy_per_step_joule"}) {
    ASSERT_TRUE(json.contains(key)) << key;
    EXPECT_TRUE(json[key].is_number()) << key;
  }
  EXPECT_TRUE(json["feasible"].is_boolean());
  EXPECT_EQ(json["trainyard"], "estimate/1");
}

TEST(EstimateJson, SaysWhatScheduleAutoBecame) {
  Priced priced;
  EXPECT_FALSE(priced.json().contains("auto_schedule"));
  priced.scenario.plan = PlanRequest{.schedule = "auto"};
  const Json found = priced.json()["auto_schedule"];
  EXPECT_EQ(found["schedule"], "interleaved-1f1b");
  EXPECT_EQ(found["virtual_stages"], 8);
}

TEST(EstimateJson, BreakdownSumsToTheStep) {
  const Json json = Priced().json();
  double sum = 0;
  for (const char* part :
       {"compute_s", "embedding_head_s", "tensor_parallel_s", "context_parallel_s",
        "expert_parallel_s", "pipeline_s", "data_parallel_s", "optimizer_s", "recompute_s",
        "offload_s", "launch_s", "bubble_s", "other_s"}) {
    ASSERT_TRUE(json["breakdown"].contains(part)) << part;
    sum += json["breakdown"][part].get<double>();
  }
  EXPECT_EQ(json["breakdown"].size(), 13U);
  EXPECT_NEAR(sum, json["step_time_s"].get<double>(), 1e-9 * sum);
}

TEST(EstimateJson, StagesHoldAllLayersAndTheFullestDecides) {
  const Json json = Priced().json();
  ASSERT_EQ(json["stages"].size(), 16U);
  int layers = 0;
  double fullest = 0;
  for (const Json& stage : json["stages"]) {
    layers += stage["layers"].get<int>();
    double kinds = 0;
    for (const auto& [kind, bytes] : stage["memory"].items()) kinds += bytes.get<double>();
    EXPECT_EQ(stage["memory"].size(), 9U);
    EXPECT_NEAR(kinds, stage["peak_memory_bytes"].get<double>(), 1.0);
    fullest = std::max(fullest, stage["peak_memory_bytes"].get<double>());
  }
  EXPECT_EQ(layers, 126);
  EXPECT_EQ(json["peak_memory_bytes"], fullest);
}

TEST(EstimateJson, IsNullWherePriceOrPowerOrCarbonIsUnknown) {
  Priced priced;
  priced.estimated.cost_per_step.reset();
  priced.estimated.energy_per_step.reset();
  priced.scenario.carbon_intensity = 1e-4;
  EXPECT_TRUE(priced.json()["cost_per_step_usd"].is_null());
  EXPECT_TRUE(priced.json()["energy_per_step_joule"].is_null());
  EXPECT_TRUE(priced.json()["carbon_per_step_g"].is_null());
}

// 1 kJ at 360 g per kWh (1e-4 g per joule) is 0.1 g.
TEST(EstimateJson, CarbonIsEnergyTimesIntensity) {
  Priced priced;
  priced.estimated.energy_per_step = Joules(1000);
  priced.scenario.carbon_intensity = 1e-4;
  EXPECT_DOUBLE_EQ(priced.json()["carbon_per_step_g"].get<double>(), 0.1);
}

TEST(PlanJson, HasPlansWithTheirEstimatesAndTheSearch) {
  const Priced priced;
  SearchResult result;
  result.plans.push_back({priced.plan, priced.estimated});
  result.space = {"tensor_parallel"};
  result.space_size = 12;
  result.considered = 11;
  result.optimal = true;
  const Json json = Json::parse(plan_json(priced.scenario, priced.job, result, {}, Seconds(0.5)));
  ASSERT_EQ(json["plans"].size(), 1U);
  EXPECT_EQ(json["plans"][0]["plan"]["tensor_parallel"], 8);
  EXPECT_EQ(json["plans"][0]["plan"]["data_parallel"], 16);
  EXPECT_EQ(json["plans"][0]["step_time_s"], priced.json()["step_time_s"]);
  EXPECT_EQ(json["search"]["space_size"], 12);
  EXPECT_EQ(json["search"]["considered"], 11);
  EXPECT_EQ(json["search"]["wall_time_s"], 0.5);
  EXPECT_EQ(json["search"]["optimal"], true);
  for (const char* key : {"space", "pruned", "infeasible", "evaluated", "gap"}) {
    EXPECT_TRUE(json["search"].contains(key)) << key;
  }
}

TEST(PlanJson, HasWhatWasFoundBesideThePlans) {
  const Priced priced;
  const Candidate best{priced.plan, priced.estimated, {}};
  PlanFindings findings;
  findings.baselines = {{"plain DDP", std::nullopt}, {"plain FSDP", best}};
  findings.marginal = {{"FLOP/s", 0.0073, false}};
  findings.ways_out = {{"16 nodes instead of 8", best, 0.25}};
  findings.explained = Explained{{{"tensor_parallel", "8"}}, std::nullopt, "heads are odd"};
  const Json json = Json::parse(plan_json(priced.scenario, priced.job, {}, findings, Seconds(0.5)));
  EXPECT_TRUE(json["baselines"][0]["best"].is_null());
  EXPECT_EQ(json["baselines"][1]["best"]["step_time_s"], priced.json()["step_time_s"]);
  EXPECT_EQ(json["marginal_values"][0]["gained"], 0.0073);
  EXPECT_EQ(json["marginal_values"][0]["more"], 0.01);
  EXPECT_EQ(json["ways_out"][0]["change"], "16 nodes instead of 8");
  EXPECT_EQ(json["ways_out"][0]["plan"]["tensor_parallel"], 8);
  EXPECT_EQ(json["explained"]["keys"]["tensor_parallel"], "8");
  EXPECT_EQ(json["explained"]["reason"], "heads are odd");
}

TEST(ValidationJson, HasFilesRowsGroupsAndNullForWhatIsUnknown) {
  const ValidationReport report =
      summarise({{.file = "a.json", .name = "x", .job = "j", .note = "heads are odd"}});
  const Json json = Json::parse(validation_json(report));
  EXPECT_EQ(json["files"][0]["rows"], 1);
  EXPECT_EQ(json["files"][0]["priced"], 0);
  EXPECT_TRUE(json["files"][0]["mape"].is_null());
  EXPECT_TRUE(json["rows"][0]["predicted_step_time_s"].is_null());
  EXPECT_EQ(json["rows"][0]["note"], "heads are odd");
  EXPECT_TRUE(json["groups"].empty());
  EXPECT_TRUE(json["mape"].is_null());
}

}  // namespace
}  // namespace trainyard
