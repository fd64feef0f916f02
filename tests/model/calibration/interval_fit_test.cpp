// Every expected width is worked out by hand in the comment beside it.
#include "model/calibration/interval_fit.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

constexpr double kPrecision = 1e-12;

// Published runs, and the predictions of them that were fitted without their own source.
struct Published {
  std::vector<MeasuredRun> runs;
  std::vector<HeldOutPrediction> predictions;

  // Adds a run that took e^distance times its prediction.
  MeasuredRun& add(const std::string& source, const std::string& stack, double distance) {
    PreparedJob job = llama_8b_on_h100();
    job.job.training.stack.name = stack;
    const Plan plan = legal_plan(job, {});
    runs.push_back({source, source, job, plan, Seconds(std::exp(distance))});
    predictions.push_back({source, source, Seconds(1), runs.back().step_time});
    return runs.back();
  }
};

// Sources a and b ran stack x; only c ran y. So no other source had c's stack when c was predicted,
// and its error is kUnseenStack times 0.5.
Published three_sources() {
  Published published;
  published.add("a", "x", -0.1);
  published.add("b", "x", 0.2);
  published.add("c", "y", 0.5 * kUnseenStack);
  return published;
}

TEST(WeightedQuantile, IsTheSmallestValueThatTheShareDoesNotExceed) {
  const std::array values = {3.0, 1.0, 2.0};
  const std::array weights = {1.0, 1.0, 2.0};  // sorted and summed: 1 of 4, 3 of 4, 4 of 4
  EXPECT_EQ(weighted_quantile(values, weights, 0.25), 1);
  EXPECT_EQ(weighted_quantile(values, weights, 0.26), 2);
  EXPECT_EQ(weighted_quantile(values, weights, 0.75), 2);
  EXPECT_EQ(weighted_quantile(values, weights, 0.76), 3);
}

// Source a states 1.3 twice, which counts once. For x, each of a's three peaks weighs 1/√3 and b's
// weighs 0.2. In the order 0.9, 1, 1.2, 1.3 the weights add up to 0.30, 0.60, 0.70 and 1 of 3/√3 +
// 0.2 = 1.93, so 10 % are reached at 0.9 and 90 % at 1.3. For y, a's peaks weigh 0.2/√3 and b's
// weighs 1: 0.09, 0.17, 0.91 and 1 of 1.35, so 10 % are reached at 1 and 90 % at 1.2.
TEST(FitMemoryInterval, HasTheQuantilesOfUnlikePeaks) {
  const std::array peaks = {PeakResidual{"a", "x", 1.3}, PeakResidual{"a", "x", 0.9},
                            PeakResidual{"a", "x", 1.3}, PeakResidual{"a", "x", 1.0},
                            PeakResidual{"b", "y", 1.2}};
  const Interval own = fit_memory_interval(peaks, "x"), other = fit_memory_interval(peaks, "y");
  EXPECT_EQ(own.low, 0.9);
  EXPECT_EQ(own.high, 1.3);
  EXPECT_EQ(other.low, 1.0);
  EXPECT_EQ(other.high, 1.2);
}

TEST(FitMemoryInterval, OfNoPeaksIsTheDefault) {
  EXPECT_EQ(fit_memory_interval({}, "x").high, Stack{}.memory_interval_high);
}

// For x: sizes 0.1, 0.2, 0.5 with weights 1, 1, 0.2; 80 % of 2.2 is 1.76, reached at 0.2.
// For y: weights 0.2, 0.2, 1; 80 % of 1.4 is 1.12, reached at 0.5.
TEST(FitIntervals, WeighsRunsOfTheSameStackMore) {
  const Published published = three_sources();
  const auto fits = fit_intervals(published.runs, published.predictions);
  ASSERT_EQ(fits.size(), 3U);
  EXPECT_EQ(fits[0].stack, "x");
  EXPECT_NEAR(fits[0].width, 0.2, kPrecision);
  EXPECT_NEAR(fits[1].width, 0.5, kPrecision);
  EXPECT_EQ(fits[0].evidence.runs, 2);
  EXPECT_EQ(fits[1].evidence.runs, 1);
}

// All three runs weigh 0.2: 80 % of 0.6 is 0.48, reached at the third.
TEST(FitIntervals, EndsWithStacksThatHaveNoRuns) {
  const Published published = three_sources();
  const IntervalFit other = fit_intervals(published.runs, published.predictions).back();
  EXPECT_EQ(other.stack, "");
  EXPECT_NEAR(other.width, 0.5, kPrecision);
  EXPECT_EQ(other.evidence.runs, 0);
}

// Source b has nine more runs at 0.3. Each of its ten runs weighs 1/√10 = 0.32, together 3.16, and
// the one run of a weighs 1. 80 % of 1 + 3.16 + 0.2 = 4.36 is 3.49. With a at 0.4, the runs of b
// reach 3.16 < 3.49, so the width is 0.4. If every run weighed the same, the runs of b would reach
// 80 % alone, and the width would be 0.3.
TEST(FitIntervals, WeighsASourceAsTheRootOfItsRuns) {
  Published published;
  published.add("a", "x", 0.4);
  published.add("b", "x", 0.2);
  for (int i = 0; i < 9; ++i) published.add("b", "x", 0.3);
  published.add("c", "y", 0.5 * kUnseenStack);
  EXPECT_NEAR(fit_intervals(published.runs, published.predictions)[0].width, 0.4, kPrecision);
}

// A run with experts is off by 0.6, three times the width 0.2 of the dense runs.
TEST(FitIntervals, GivesExpertsAFactorOfTheirOwn) {
  Published published = three_sources();
  EXPECT_EQ(fit_intervals(published.runs, published.predictions)[0].moe, Stack{}.interval_moe);
  published.add("d", "x", 0.6).job.job.model.experts = 8;
  const auto fits = fit_intervals(published.runs, published.predictions);
  EXPECT_NEAR(fits[0].width, 0.2, kPrecision);
  EXPECT_NEAR(fits[0].moe, 3, kPrecision);
}

// Without a: 0.2 weighs 1 and 0.5 weighs 0.2; 80 % of 1.2 is 0.96, reached at 0.2.
// Without c: 0.1 and 0.2 weigh 0.2 each; 80 % of 0.4 is 0.32, reached at 0.2, and y is then unseen.
TEST(HeldOutIntervals, ComeFromTheOtherSources) {
  const Published published = three_sources();
  const auto intervals = held_out_intervals(published.runs, published.predictions);
  ASSERT_EQ(intervals.size(), 3U);
  EXPECT_NEAR(intervals[0].high, std::exp(0.2), kPrecision);
  EXPECT_NEAR(intervals[0].low, std::exp(-0.2), kPrecision);
  EXPECT_NEAR(intervals[2].high, std::exp(0.2 * kUnseenStack), kPrecision);
}

TEST(HeldOutIntervals, DoNotDependOnTheTimesOfTheirSource) {
  Published published = three_sources();
  const double before = held_out_intervals(published.runs, published.predictions)[0].high;
  published.runs[0].step_time *= 5;
  EXPECT_EQ(held_out_intervals(published.runs, published.predictions)[0].high, before);
}

// a ran on 8 devices and b on 16, so a prediction of b from a is one doubling beyond the evidence,
// and between nodes.
TEST(HeldOutIntervals, WidenWhereTheOtherSourcesAreLeft) {
  Published published = three_sources();
  published.runs[1].plan.data_parallel *= 2;
  const auto intervals = held_out_intervals(published.runs, published.predictions);
  // Without b: 0.1 weighs 1 and 0.5 weighs 0.2; 80 % is reached at 0.1.
  EXPECT_NEAR(std::log(intervals[1].high), 0.1 * kUnseenNetwork * (1 + kPerDoubling), kPrecision);
}

// The devices of b and c have twice the interval, so b's 0.2 counts as 0.1 and c's 0.5 as 0.25. For
// x: sizes 0.1, 0.1, 0.25 with weights 1, 1, 0.2; 80 % is reached at 0.1. Held out, b has twice the
// width 0.1 of the others. So has c, whose stack is then unseen: weights 0.2 each, reached at 0.1.
TEST(HeldOutIntervals, WidenOnADeviceWhoseKernelsNobodyMeasured) {
  Published published = three_sources();
  for (const std::size_t run : {1U, 2U}) {
    published.runs[run].job.job.cluster.device.interval_widening = 2;
  }
  const auto fits = fit_intervals(published.runs, published.predictions);
  EXPECT_NEAR(fits[0].width, 0.1, kPrecision);
  EXPECT_NEAR(fits[1].width, 0.25, kPrecision);
  const auto intervals = held_out_intervals(published.runs, published.predictions);
  EXPECT_NEAR(std::log(intervals[1].high), 0.1 * 2, kPrecision);
  EXPECT_NEAR(std::log(intervals[2].high), 0.1 * 2 * kUnseenStack, kPrecision);
}

TEST(Evidence, SaysWhatTheRunsWereLike) {
  Published published = three_sources();
  published.runs[1].plan.tensor_parallel = 4;
  const std::int64_t longest = published.runs[0].job.job.training.sequence_length;
  published.runs[1].job.job.training.sequence_length = 4 * longest;
  const StackEvidence both = evidence_of(published.runs, "x");
  EXPECT_EQ(both.runs, 2);
  EXPECT_EQ(both.devices, 32);  // 8 data parallel · 4
  EXPECT_EQ(both.sequence_length, 4 * longest);
  EXPECT_TRUE(both.hopper && both.tensor_parallel);
  EXPECT_FALSE(both.ampere || both.blackwell || both.pipeline_parallel || both.context_parallel);
  const StackEvidence one = evidence_of(published.runs, "x", "b");
  EXPECT_EQ(one.runs, 1);
  EXPECT_EQ(one.devices, 8);
  EXPECT_FALSE(one.tensor_parallel);
}

TEST(Intervals, GoIntoTheStackWiderWhereItHasNoRuns) {
  IntervalFit fit{.stack = "x", .width = 0.1, .moe = 2.5, .evidence = {.runs = 3}};
  EXPECT_NEAR(with_interval({}, fit).interval_high, std::exp(0.1), kPrecision);
  EXPECT_NEAR(with_interval({}, fit).interval_low, std::exp(-0.1), kPrecision);
  EXPECT_EQ(with_interval({}, fit).interval_moe, 2.5);
  EXPECT_EQ(with_interval({}, fit).evidence.runs, 3);
  fit.evidence.runs = 0;
  EXPECT_NEAR(with_interval({}, fit).interval_high, std::exp(0.1 * kUnseenStack), kPrecision);
}

}  // namespace
}  // namespace trainyard
