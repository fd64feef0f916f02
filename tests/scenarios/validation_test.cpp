#include "scenarios/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace trainyard {
namespace {

ValidationRow row(const std::string& file, const std::string& name, double predicted,
                  double measured, const std::string& job = "job") {
  return {.file = file,
          .name = name,
          .job = job,
          .predicted = Seconds(predicted),
          .measured = Seconds(measured),
          .error = predicted / measured - 1};
}

Scenario measured_scenario() {
  Scenario scenario{.name = "run"};
  scenario.measured = Measured{.step_time = Seconds(2),
                               .peak_memory = Bytes(50e9),
                               .peak_memory_kind = MemoryKind::reserved};
  return scenario;
}

Estimate estimate_of(double seconds) {
  Estimate estimate;
  estimate.step_time = Seconds(seconds);
  estimate.peak_allocated = Bytes(40e9);
  estimate.peak_reserved = Bytes(45e9);
  estimate.peak_memory = Bytes(47e9);
  return estimate;
}

// The error is predicted / measured − 1, with its sign (design §4).
TEST(ValidationRows, ErrorIsSignedAndMemoryIsComparedInTheKindThatWasMeasured) {
  const ValidationRow priced = priced_row("f.json", measured_scenario(), estimate_of(1.8));
  EXPECT_DOUBLE_EQ(priced.error.value(), -0.1);
  EXPECT_EQ(priced.predicted_memory, Bytes(45e9));
  EXPECT_DOUBLE_EQ(priced.memory_error.value(), -0.1);
}

TEST(ValidationRows, WithoutMeasuredMemoryHaveTheDevices) {
  Scenario scenario = measured_scenario();
  scenario.measured->peak_memory.reset();
  scenario.measured->peak_memory_kind = MemoryKind::device;
  EXPECT_EQ(priced_row("f.json", scenario, estimate_of(1.8)).predicted_memory, Bytes(47e9));
  scenario.measured.reset();
  const ValidationRow alone = priced_row("f.json", scenario, estimate_of(1.8));
  EXPECT_EQ(alone.predicted_memory, Bytes(47e9));
  EXPECT_FALSE(alone.error || alone.memory_error);
  EXPECT_EQ(alone.note, "nothing was measured that the prediction could be held against");
}

// Llama-3.1-8B has 8.03 billion parameters (handbook §2).
TEST(ValidationRows, SayWhatTheRunWas) {
  Scenario scenario = measured_scenario();
  scenario.measured->source = "a report";
  scenario.measured->release = "25.04";
  scenario.plan = PlanRequest{.tensor_parallel = 8, .pipeline_parallel = 2, .expert_parallel = 4};
  Job& job = scenario.job;
  job.model = {.layers = 32,
               .hidden_size = 4096,
               .attention_heads = 32,
               .kv_heads = 8,
               .head_dim = 128,
               .ffn_size = 14336,
               .vocabulary = 128256};
  job.cluster.device.name = "h100";
  job.cluster.devices_per_node = 8;
  job.cluster.nodes = 4;
  job.training.stack.name = "torchtitan";
  const ValidationRow row = priced_row("f.json", scenario, estimate_of(2));
  EXPECT_EQ(row.size, "1–10 B");
  EXPECT_EQ(row.parallelism, "tp+ep+pp");
  EXPECT_EQ(row.device, "h100");
  EXPECT_EQ(row.devices, 32);
  EXPECT_EQ(row.stack, "torchtitan");
  EXPECT_EQ(row.source, "a report");
  EXPECT_EQ(row.release, "25.04");
  EXPECT_EQ(priced_row("f.json", measured_scenario(), estimate_of(2)).parallelism, "dp only");
}

// Only if the stack has releases to choose from.
TEST(ValidationRows, SayWhenTheirReleaseChoosesNone) {
  Scenario scenario = measured_scenario();
  Training& training = scenario.job.training;
  training.stack.name = "stack";
  training.stack.releases.emplace_back();
  for (const std::string release : {"", "25.04", "26.04.01 NeMo Container"}) {
    training.release = release;
    EXPECT_EQ(priced_row("f.json", scenario, estimate_of(2)).note, "") << release;
  }
  for (const std::string release : {"not a release", "99.99", "v1.2"}) {
    training.release = release;
    EXPECT_EQ(priced_row("f.json", scenario, estimate_of(2)).note,
              "its release, \"" + release +
                  "\", does not begin with year and month: priced as stack without a release");
  }
  training.stack.releases.clear();
  EXPECT_EQ(priced_row("f.json", scenario, estimate_of(2)).note, "");
}

TEST(ValidationRows, RowOfAnIllegalPlanKeepsItsPlaceWithANote) {
  const ValidationRow row = unpriced_row("f.json", measured_scenario(), "40 heads over t = 16");
  EXPECT_FALSE(row.predicted.has_value() || row.error.has_value());
  EXPECT_EQ(row.measured, Seconds(2));
  EXPECT_EQ(row.note, "40 heads over t = 16");
}

// errors| of 10 %, 20 % and 30 % in two files: MAPE 15 % and 30 % by file, 20 % over all rows.
TEST(ValidationReports, AverageByFileAndOverAllRows) {
  const ValidationReport report = summarise(
      {row("a", "1", 1.1, 1, "x"), row("b", "2", 0.7, 1, "y"), row("a", "3", 0.8, 1, "z")});
  ASSERT_EQ(report.files.size(), 2U);
  EXPECT_EQ(report.files[0].file, "a");
  EXPECT_EQ(report.files[0].rows, 2);
  EXPECT_NEAR(report.files[0].mape.value(), 0.15, 1e-12);
  EXPECT_NEAR(report.files[1].mape.value(), 0.30, 1e-12);
  EXPECT_NEAR(report.all.mape.value(), 0.20, 1e-12);
  EXPECT_NEAR(report.all.median.value(), 0.20, 1e-12);
  EXPECT_NEAR(report.all.bias.value(), -0.40 / 3, 1e-12);  // +0.1 − 0.3 − 0.2
  EXPECT_FALSE(report.all.memory_mape.has_value());
  EXPECT_FALSE(report.all.held_out_mape.has_value());
}

TEST(ValidationReports, AverageByWhatRunsHaveInCommonTheLargestPartFirst) {
  auto rows = std::vector{row("a", "1", 1.1, 1), row("a", "2", 0.7, 1), row("b", "3", 1.3, 1)};
  rows[0].device = "old";
  rows[1].device = rows[2].device = "new";
  const ValidationReport report = summarise(rows);
  ASSERT_EQ(report.by_device.size(), 2U);
  EXPECT_EQ(report.by_device[0].name, "new");
  EXPECT_EQ(report.by_device[0].rows, 2);
  EXPECT_NEAR(report.by_device[0].mape.value(), 0.3, 1e-12);
  EXPECT_NEAR(report.by_device[1].mape.value(), 0.1, 1e-12);
}

TEST(ValidationReports, AverageBySizeTheSmallestFirst) {
  auto rows = std::vector<ValidationRow>(5, row("a", "run", 1, 1));
  const std::array sizes = {"10–100 B", "≥ 100 B", "< 1 B", "1–10 B", "≥ 100 B"};
  for (std::size_t i = 0; i < sizes.size(); ++i) rows[i].size = sizes[i];
  std::vector<std::string> names;
  for (const SliceSummary& slice : summarise(rows).by_size) names.push_back(slice.name);
  EXPECT_THAT(names, ::testing::ElementsAre("< 1 B", "1–10 B", "10–100 B", "≥ 100 B"));
}

// The measured value 1 is inside 0.9 … 1.2, on the limit of 1 … 2 and outside 1.1 … 1.3; the fourth
// row has no interval.
TEST(ValidationReports, CountWhatLiesInsideTheInterval) {
  auto rows = std::vector<ValidationRow>(4, row("a", "run", 1.1, 1));
  const std::array bounds = {std::pair(0.9, 1.2), std::pair(1.0, 2.0), std::pair(1.1, 1.3)};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    rows[i].low = Seconds(bounds[i].first);
    rows[i].high = Seconds(bounds[i].second);
  }
  EXPECT_NEAR(summarise(rows).all.coverage.value(), 2.0 / 3, 1e-12);
}

TEST(ValidationReports, ScoreLeftOutSourcesApart) {
  ValidationRow left_out = row("a", "run", 1.1, 1);
  left_out.held_out =
      HeldOut{.predicted = Seconds(1.4), .low = Seconds(1.2), .high = Seconds(1.6), .error = 0.4};
  const ValidationReport report = summarise({left_out, row("b", "other", 1.0, 1)});
  EXPECT_NEAR(report.all.mape.value(), 0.05, 1e-12);
  EXPECT_NEAR(report.all.held_out_mape.value(), 0.4, 1e-12);
  EXPECT_EQ(report.all.held_out_coverage.value(), 0);
}

// In sample the order is right. Held out it is reversed, and the chosen plan takes twice the best.
TEST(ValidationReports, RankPlansHeldOutToo) {
  auto rows = std::vector{row("a", "1", 1, 1), row("a", "2", 2, 2)};
  EXPECT_FALSE(summarise(rows).groups.at(0).held_out_regret.has_value());
  rows[0].held_out = HeldOut{.predicted = Seconds(2)};
  rows[1].held_out = HeldOut{.predicted = Seconds(1)};
  const PlanGroup group = summarise(rows).groups.at(0);
  EXPECT_EQ(group.kendall_tau, 1);
  EXPECT_EQ(group.regret, 0);
  EXPECT_EQ(group.held_out_kendall_tau, -1);
  EXPECT_EQ(group.held_out_regret, 1);
}

TEST(ValidationReports, SayWhichGroupsMixReleases) {
  auto rows = std::vector{row("a", "1", 1, 1), row("a", "2", 2, 2)};
  EXPECT_TRUE(summarise(rows).groups.at(0).one_release);
  rows[1].release = "newer";
  EXPECT_FALSE(summarise(rows).groups.at(0).one_release);
}

// Of three plans the second is predicted best but the first is best: regret 1.2/1.0 − 1. The pair
// (1,2) is inverted, (1,3) and (2,3) agree: τ = 1/3.
TEST(ValidationReports, RankThePlansOfOneJob) {
  const ValidationReport report =
      summarise({row("a", "first", 2.0, 1.0), row("a", "second", 1.5, 1.2),
                 row("b", "third", 3.0, 2.0), row("a", "other job", 1.0, 1.0, "other")});
  ASSERT_EQ(report.groups.size(), 1U);
  EXPECT_THAT(report.groups[0].plans, ::testing::ElementsAre("first", "second", "third"));
  EXPECT_NEAR(report.groups[0].kendall_tau.value(), 1.0 / 3, 1e-12);
  EXPECT_NEAR(report.groups[0].regret, 0.2, 1e-12);
}

}  // namespace
}  // namespace trainyard
