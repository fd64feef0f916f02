// Every expected value is worked out by hand in the comment beside it.
#include "model/calibration/accuracy.h"

#include <gtest/gtest.h>

#include <array>

namespace trainyard {
namespace {

TEST(MeanAbsolute, IsTheMeanOfMagnitudes) {
  EXPECT_DOUBLE_EQ(mean_absolute(std::array{-0.1, 0.2, 0.3}).value(), 0.2);  // 0.6 / 3
  EXPECT_FALSE(mean_absolute({}));
}

TEST(MedianAbsolute, IsTheMiddleOrTheMeanOfTheTwoMiddles) {
  EXPECT_DOUBLE_EQ(median_absolute(std::array{-0.5, 0.1, 0.2}).value(), 0.2);
  EXPECT_DOUBLE_EQ(median_absolute(std::array{-0.5, 0.1, 0.2, -0.3}).value(), 0.25);
  EXPECT_FALSE(median_absolute({}));
}

TEST(Bias, KeepsTheSign) {
  EXPECT_NEAR(bias(std::array{-0.1, 0.4, 0.3}).value(), 0.2, 1e-15);  // 0.6 / 3
  EXPECT_FALSE(bias({}));
}

TEST(KendallTau, IsOneForTheSameAndMinusOneForTheReversedOrder) {
  EXPECT_DOUBLE_EQ(kendall_tau(std::array{1., 2., 3.}, std::array{10., 20., 30.}).value(), 1);
  EXPECT_DOUBLE_EQ(kendall_tau(std::array{3., 2., 1.}, std::array{10., 20., 30.}).value(), -1);
}

TEST(KendallTau, CountsPairs) {
  // Measured order 1 2 3 4, predicted 1 3 2 4: one of six pairs discordant, (5 − 1) / 6.
  EXPECT_DOUBLE_EQ(kendall_tau(std::array{1., 3., 2., 4.}, std::array{1., 2., 3., 4.}).value(),
                   4.0 / 6);
}

TEST(KendallTau, CorrectsForPairsPredictedEqual) {
  // Five pairs agree, one is predicted equal: 5 / √(5 · 6). scipy.stats.kendalltau (1.17):
  // 0.9128709291752769.
  EXPECT_NEAR(kendall_tau(std::array{1., 2., 2., 4.}, std::array{1., 2., 3., 4.}).value(),
              0.9128709291752769, 1e-12);
  // The example of scipy's manual, one added to every measurement: −0.4714045207910317.
  EXPECT_NEAR(kendall_tau(std::array{12., 2., 1., 12., 2.}, std::array{2., 5., 8., 2., 1.}).value(),
              -0.4714045207910317, 1e-12);
}

TEST(KendallTau, IsZeroWhereThePredictionHasNoOrder) {
  EXPECT_EQ(kendall_tau(std::array{1., 1.}, std::array{1., 2.}).value(), 0);
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

}  // namespace
}  // namespace trainyard
