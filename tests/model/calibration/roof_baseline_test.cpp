#include "model/calibration/roof_baseline.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace trainyard {
namespace {

constexpr double kMicro = 1e-6;

RoofSample row(double measured, double ideal) {
  return {Seconds(measured * kMicro), Seconds(ideal * kMicro)};
}

// All rows take 5 µs plus their ideal time over 0.8, except one that takes four times as long.
TEST(RoofBaseline, FindsTheLaunchAndTheFractionOfMostRows) {
  std::vector<RoofSample> rows;
  for (double ideal = 0.1; ideal < 2000; ideal *= 2) rows.push_back(row(5 + ideal / 0.8, ideal));
  rows[4].measured *= 4.0;
  const RoofBaseline baseline = fit_roof_baseline(rows);
  EXPECT_NEAR(baseline.launch / Seconds(kMicro), 5, 1e-3);
  EXPECT_NEAR(1 / baseline.slowdown, 0.8, 1e-4);
  // The spoilt row is predicted at a quarter of its time, an error of 0.75 in one of fifteen rows.
  ASSERT_EQ(rows.size(), 15U);
  EXPECT_NEAR(mean_error(baseline, rows), 0.75 / 15, 1e-5);
}

// Two rows of the same ideal time measured 1 s and 2 s. The fit takes 1 s, because |p − 1| grows
// twice as fast as |p/2 − 1| falls.
TEST(RoofBaseline, IsTheShorterOfTwoTimesOfOneShape) {
  const std::array rows = {row(1e6, 1e6), row(2e6, 1e6)};
  const RoofBaseline baseline = fit_roof_baseline(rows);
  EXPECT_NEAR(baseline.time(rows[0].ideal).value(), 1, 1e-6);
  EXPECT_NEAR(mean_error(baseline, rows), 0.25, 1e-6);
}

TEST(RoofBaseline, HasNoLaunchWhereRowsTakeThatOfTheirRoofs) {
  const std::array rows = {row(2, 1), row(20, 10), row(200, 100)};
  const RoofBaseline baseline = fit_roof_baseline(rows);
  EXPECT_EQ(baseline.launch.value(), 0);
  EXPECT_NEAR(baseline.slowdown, 2, 1e-12);
}

TEST(RoofBaseline, MeetsASingleRow) {
  const std::array rows = {row(7, 3)};
  EXPECT_NEAR(mean_error(fit_roof_baseline(rows), rows), 0, 1e-9);
}

// The error is convex in both parameters, so a fit that no small step improves is the best.
TEST(RoofBaseline, IsNotBetteredByAnySmallStep) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> octave(-2, 12), scatter(-0.7, 0.7);
  std::vector<RoofSample> rows;
  for (int i = 0; i < 400; ++i) {
    const double ideal = std::exp2(octave(random));
    rows.push_back(row((6 + ideal / 0.7) * std::exp(scatter(random)), ideal));
  }
  const RoofBaseline found = fit_roof_baseline(rows);
  const double least = mean_error(found, rows);
  for (const double launch : {-0.01, 0.0, 0.01}) {
    for (const double slowdown : {-0.003, 0.0, 0.003}) {
      const RoofBaseline near = {found.launch + Seconds(launch * kMicro),
                                 found.slowdown + slowdown};
      EXPECT_GE(mean_error(near, rows), least - 1e-7) << launch << " " << slowdown;
    }
  }
}

}  // namespace
}  // namespace trainyard
