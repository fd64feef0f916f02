#include "scenarios/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// predicted / measured − 1, signed (design §4).
TEST(ValidationRows, ErrorIsSignedAndMemoryIsComparedInTheKindThatWasMeasured) {
  const ValidationRow priced = priced_row("f.json", measured_scenario(), estimate_of(1.8));
  EXPECT_DOUBLE_EQ(priced.error.value(), -0.1);
  EXPECT_EQ(priced.predicted_memory, Bytes(45e9));
  EXPECT_DOUBLE_EQ(priced.memory_error.value(), -0.1);
}

TEST(ValidationRows, RowOfAnIllegalPlanKeepsItsPlaceWithANote) {
  const ValidationRow row = unpriced_row("f.json", measured_scenario(), "40 heads over t = 16");
  EXPECT_FALSE(row.predicted.has_value() || row.error.has_value());
  EXPECT_EQ(row.measured, Seconds(2));
  EXPECT_EQ(row.note, "40 heads over t = 16");
}

// |errors| 10 %, 20 % and 30 % in two files: MAPE 15 % and 30 %, over all rows 20 %.
TEST(ValidationReports, AverageByFileAndOverAllRows) {
  const ValidationReport report = summarise(
      {row("a", "1", 1.1, 1, "x"), row("b", "2", 0.7, 1, "y"), row("a", "3", 0.8, 1, "z")});
  ASSERT_EQ(report.files.size(), 2U);
  EXPECT_EQ(report.files[0].file, "a");
  EXPECT_EQ(report.files[0].rows, 2);
  EXPECT_NEAR(report.files[0].mape.value(), 0.15, 1e-12);
  EXPECT_NEAR(report.files[1].mape.value(), 0.30, 1e-12);
  EXPECT_NEAR(report.mape.value(), 0.20, 1e-12);
  EXPECT_NEAR(report.median.value(), 0.20, 1e-12);
  EXPECT_FALSE(report.memory_mape.has_value());
}

// Of three plans the second is predicted best and the first is: 1.2 / 1.0 − 1. Pairs: (1,2) is
// inverted, (1,3) and (2,3) agree: τ = 1/3.
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
