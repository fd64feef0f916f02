#include <gtest/gtest.h>

#include "scenarios/scenario.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

// BLOOM's runs are the exception: their stack has no ZeRO, but their plans use it. Rows by file are
// in measured/README.md.
TEST(MeasuredRuns, AreAllReadWithoutAnAssumption) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  std::size_t rows = 0;
  for (const auto& entry : std::filesystem::directory_iterator(shared / "measured" / "runs")) {
    const auto scenarios = read_scenarios(entry.path());
    ASSERT_TRUE(scenarios.has_value()) << scenarios.error().where << scenarios.error().message;
    rows += scenarios->size();
    for (const Scenario& scenario : *scenarios) {
      EXPECT_TRUE(scenario.plan.has_value() && scenario.measured.has_value()) << scenario.name;
      EXPECT_TRUE(measured_step_time(scenario).has_value()) << scenario.name;
      const bool bloom = entry.path().stem() == "bigscience";
      EXPECT_EQ(scenario.assumptions,
                bloom ? std::vector<std::string>{"megatron-2021 has no ZeRO: the plan runs on "
                                                 "megatron-deepspeed"}
                      : std::vector<std::string>{})
          << scenario.name;
    }
  }
  EXPECT_EQ(rows, 294U);
}

// The first row of korthikanti.json, field by field as in the document.
TEST(MeasuredRuns, FieldsArriveWhereTheyBelong) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto scenarios = read_scenarios(shared / "measured" / "runs" / "korthikanti.json");
  ASSERT_TRUE(scenarios.has_value());
  const Scenario& scenario = scenarios->front();
  EXPECT_EQ(scenario.name, "korth_t5_22B_full");
  const Transformer& model = scenario.job.model;
  EXPECT_EQ(model.layers, 48);
  EXPECT_EQ(model.kv_heads, 64);
  EXPECT_EQ(model.head_dim, 6144 / 64);
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_EQ(model.norm, Norm::layer_norm);
  const Cluster& cluster = scenario.job.cluster;
  EXPECT_EQ(cluster.device.name, "a100-sxm-80gb");
  EXPECT_EQ(cluster.intra.bandwidth, BytesPerSecond(300e9));
  EXPECT_EQ(cluster.inter.bandwidth, BytesPerSecond(25e9));
  EXPECT_EQ(cluster.nvlink_domain, 8);
  EXPECT_EQ(scenario.job.training.stack.name, "megatron-2022");
  EXPECT_EQ(scenario.plan->recompute.mode, RecomputeMode::full);
  EXPECT_EQ(scenario.plan->sequence_parallel, false);
  EXPECT_EQ(scenario.measured->step_time, Seconds(1.42));
}

TEST(MeasuredRuns, RowsThatDifferByTheirPlanOnlyShareTheirJob) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto scenarios = read_scenarios(shared / "measured" / "runs" / "korthikanti.json").value();
  EXPECT_EQ(scenarios[0].job_text, scenarios[1].job_text);  // 22B, full and selective
  EXPECT_NE(scenarios[0].job_text, scenarios[2].job_text);  // 175B
}

}  // namespace
}  // namespace trainyard
