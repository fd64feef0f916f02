// Every expected value is worked out by hand in the comment beside it.
#include "model/calibration/accuracy.h"

#include <gtest/gtest.h>

#include <array>

namespace trainyard {
namespace {

ValidationRow run(std::string file, double predicted, double measured, int group = -1) {
  ValidationRow row;
  row.file = std::move(file);
  row.group = group;
  row.predicted = Seconds(predicted);
  row.measured = Seconds(measured);
  return row;
}

TEST(ValidationRow, ErrorIsSignedAndRelativeToTheMeasurement) {
  EXPECT_DOUBLE_EQ(run("a", 9, 10).error().value(), -0.1);  // 9/10 − 1
  EXPECT_DOUBLE_EQ(run("a", 12, 10).error().value(), 0.2);
}

TEST(ValidationRow, HasNoErrorWithoutBothTimes) {
  ValidationRow row = run("a", 9, 10);
  row.predicted.reset();
  EXPECT_FALSE(row.error());
  EXPECT_FALSE(run("a", 9, 0).error()) << "a measurement of zero is none";
  EXPECT_FALSE(row.memory_error());
}

TEST(MeanAbsolute, IsTheMeanOfMagnitudes) {
  EXPECT_DOUBLE_EQ(mean_absolute(std::array{-0.1, 0.2, 0.3}).value(), 0.2);  // 0.6 / 3
  EXPECT_FALSE(mean_absolute({}));
}

TEST(MedianAbsolute, IsTheMiddleOrTheMeanOfTheTwoMiddles) {
  EXPECT_DOUBLE_EQ(median_absolute(std::array{-0.5, 0.1, 0.2}).value(), 0.2);
  EXPECT_DOUBLE_EQ(median_absolute(std::array{-0.5, 0.1, 0.2, -0.3}).value(), 0.25);
  EXPECT_FALSE(median_absolute({}));
}

TEST(KendallTau, IsOneForTheSameAndMinusOneForTheReversedOrder) {
  EXPECT_DOUBLE_EQ(kendall_tau(std::array{1., 2., 3.}, std::array{10., 20., 30.}).value(), 1);
  EXPECT_DOUBLE_EQ(kendall_tau(std::array{3., 2., 1.}, std::array{10., 20., 30.}).value(), -1);
}

TEST(KendallTau, CountsPairs) {
  // Measured order 1 2 3 4, predicted 1 3 2 4: one of six pairs discordant, (5 − 1) / 6.
  EXPECT_DOUBLE_EQ(kendall_tau(std::array{1., 3., 2., 4.}, std::array{1., 2., 3., 4.}).value(),
                   4.0 / 6);
  // A pair predicted equal is neither: (5 − 0) / 6.
  EXPECT_DOUBLE_EQ(kendall_tau(std::array{1., 2., 2., 4.}, std::array{1., 2., 3., 4.}).value(),
                   5.0 / 6);
}

TEST(KendallTau, LeavesOutPairsThatTheMeasurementCannotTellApart) {
  // 100 and 102 differ by 2 %: only the pairs with 200 count, both concordant.
  EXPECT_DOUBLE_EQ(kendall_tau(std::array{2., 1., 3.}, std::array{100., 102., 200.}).value(), 1);
  EXPECT_FALSE(kendall_tau(std::array{2., 1.}, std::array{100., 102.}));
}

TEST(KendallTau, CountsAPairJustBeyondTheTolerance) {
  EXPECT_FALSE(kendall_tau(std::array{1., 2.}, std::array{100., 103.}));
  EXPECT_TRUE(kendall_tau(std::array{1., 2.}, std::array{100., 103.01}));
}

TEST(Regret, IsWhatFollowingThePredictionCosts) {
  // Predicted fastest is the second, measured 11; the fastest measured is 10.
  EXPECT_NEAR(regret(std::array{2., 1., 3.}, std::array{10., 11., 20.}), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(regret(std::array{1., 2.}, std::array{10., 11.}), 0);
}

TEST(Assess, ReportsFilesInOrderAndWeighsRowsEqually) {
  const ValidationReport report =
      assess({run("b", 11, 10), run("a", 8, 10), run("a", 7, 10), run("b", 10, 10)});
  ASSERT_EQ(report.files.size(), 2u);
  EXPECT_EQ(report.files[0].file, "b");
  EXPECT_NEAR(report.files[0].mape.value(), 0.05, 1e-12);    // (0.1 + 0) / 2
  EXPECT_NEAR(report.files[1].median.value(), 0.25, 1e-12);  // (0.2 + 0.3) / 2
  EXPECT_NEAR(report.mape.value(), 0.15, 1e-12);             // (0.1 + 0.2 + 0.3 + 0) / 4
  EXPECT_NEAR(report.median.value(), 0.15, 1e-12);           // (0.1 + 0.2) / 2
}

TEST(Assess, KeepsARowThatCannotBePriced) {
  ValidationRow illegal = run("a", 1, 10);
  illegal.predicted.reset();
  illegal.note = "heads";
  const ValidationReport report = assess({illegal, run("a", 9, 10)});
  EXPECT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.files[0].rows, 2);
  EXPECT_EQ(report.files[0].priced, 1);
  EXPECT_NEAR(report.mape.value(), 0.1, 1e-12);
}

TEST(Assess, HasNoFiguresWhenNothingWasPriced) {
  ValidationRow illegal = run("a", 1, 10);
  illegal.predicted.reset();
  const ValidationReport report = assess({illegal});
  EXPECT_FALSE(report.mape);
  EXPECT_FALSE(report.files[0].mape);
  EXPECT_TRUE(report.groups.empty());
}

TEST(Assess, RanksOnlyGroupsOfAtLeastTwoPricedPlans) {
  ValidationRow illegal = run("a", 1, 5, 1);
  illegal.predicted.reset();
  const ValidationReport report =
      assess({run("a", 2, 10, 0), run("a", 1, 20, 0), run("a", 3, 30, 0), run("a", 1, 4, 1),
              illegal, run("a", 1, 4)});
  ASSERT_EQ(report.groups.size(), 1u);
  EXPECT_EQ(report.groups[0].plans, 3);
  EXPECT_NEAR(report.groups[0].kendall_tau.value(), 1.0 / 3, 1e-12);  // one of three discordant
  EXPECT_NEAR(report.groups[0].regret, 1.0, 1e-12);                   // 20 instead of 10
}

TEST(Assess, ReportsMemorySeparately) {
  ValidationRow row = run("a", 10, 10);
  row.predicted_memory = Bytes(55e9);
  row.measured_memory = Bytes(50e9);
  const ValidationReport report = assess({row, run("a", 10, 10)});
  EXPECT_NEAR(report.memory_mape.value(), 0.1, 1e-12);  // only the row that measured it
}

}  // namespace
}  // namespace trainyard
