// Gaps in timelines made by hand, with the sums computed by hand.
#include "executor/measure/step_gaps.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

constexpr auto kCompute = ProgramStream::compute;
constexpr auto kTensor = ProgramStream::tensor_parallel;
constexpr auto kPipeline = ProgramStream::pipeline;
constexpr auto kCopy = ProgramStream::copy;

TimedOperation timed(ProgramStream stream, double begin, double end) {
  const bool communicates = stream == kTensor || stream == kPipeline;
  return {stream, communicates, Seconds(begin), Seconds(end)};
}

void expect_gap(const StepGap& gap, double time, int after, int before) {
  EXPECT_DOUBLE_EQ(gap.time.value(), time);
  EXPECT_EQ(gap.after, after);
  EXPECT_EQ(gap.before, before);
}

TEST(StepGaps, OfOneStreamAreWhatItsOperationsLeave) {
  // Work in 0-2, 3-4, 4-6, 10-11 leaves gaps of 1 s and 4 s.
  const StepGaps gaps = gaps_of({timed(kCompute, 0, 2), timed(kCompute, 3, 4),
                                 timed(kCompute, 4, 6), timed(kCompute, 10, 11)});
  EXPECT_DOUBLE_EQ(gaps.all.value(), 5);
  expect_gap(gaps.longest, 4, 2, 3);
  ASSERT_EQ(gaps.streams.size(), 1U);
  EXPECT_EQ(gaps.streams[0].stream, kCompute);
  EXPECT_DOUBLE_EQ(gaps.streams[0].all.value(), 5);
  EXPECT_DOUBLE_EQ(gaps.streams[0].communication.value(), 0);
  expect_gap(gaps.streams[0].longest, 4, 2, 3);
}

// compute:  0-2         6-8   10-12
// tensor:     1------5
// pipeline:             7---9
// Compute leaves 2-6 and 8-10: 6 s, of which the rank communicates in 2-5 and 8-9: 4 s. In 5-6 and
// 9-10 nothing runs. Tensor has one operation and so no gap, nor has pipeline.
TEST(StepGaps, TellCommunicationOfOtherStreamsFromNothing) {
  const StepGaps gaps = gaps_of({timed(kCompute, 0, 2), timed(kTensor, 1, 5), timed(kCompute, 6, 8),
                                 timed(kPipeline, 7, 9), timed(kCompute, 10, 12)});
  EXPECT_DOUBLE_EQ(gaps.all.value(), 2);
  expect_gap(gaps.longest, 1, 1, 2);  // the first of two alike
  ASSERT_EQ(gaps.streams.size(), 3U);
  EXPECT_EQ(gaps.streams[0].stream, kCompute);
  EXPECT_DOUBLE_EQ(gaps.streams[0].all.value(), 6);
  EXPECT_DOUBLE_EQ(gaps.streams[0].communication.value(), 4);
  expect_gap(gaps.streams[0].longest, 4, 0, 2);
  EXPECT_EQ(gaps.streams[1].stream, kTensor);
  EXPECT_DOUBLE_EQ(gaps.streams[1].all.value(), 0);
  expect_gap(gaps.streams[1].longest, 0, -1, -1);
  EXPECT_EQ(gaps.streams[2].stream, kPipeline);
  EXPECT_DOUBLE_EQ(gaps.streams[2].all.value(), 0);
}

// Two messages in the same gap overlap and count once: 2-5 and 4-6 of the gap 1-8 are 4 s. The gap
// names the operation that ended last before it. A copy is not communication. The pipeline's
// operations have several peers and overlap, so none of its time is a gap.
TEST(StepGaps, CountTimesOnceWhereOperationsOverlap) {
  const StepGaps gaps =
      gaps_of({timed(kCompute, 0, 1), timed(kPipeline, 2, 5), timed(kPipeline, 4, 6),
               timed(kPipeline, 4, 4.5), timed(kCopy, 6.5, 7), timed(kCompute, 8, 9)});
  ASSERT_EQ(gaps.streams.size(), 3U);
  EXPECT_DOUBLE_EQ(gaps.streams[0].all.value(), 7);
  EXPECT_DOUBLE_EQ(gaps.streams[0].communication.value(), 4);
  EXPECT_EQ(gaps.streams[1].stream, kPipeline);
  EXPECT_DOUBLE_EQ(gaps.streams[1].all.value(), 0);
  // 1-2, 6-6.5, 7-8
  EXPECT_DOUBLE_EQ(gaps.all.value(), 2.5);
  expect_gap(gaps.longest, 1, 0, 1);
}

// An operation that lies inside a longer one, listed before it, ends nothing. Operations are
// ordered by their begin, not by the list.
TEST(StepGaps, FollowTimeAndNotTheList) {
  const StepGaps gaps =
      gaps_of({timed(kCompute, 6, 7), timed(kCompute, 0, 4), timed(kCompute, 1, 2)});
  EXPECT_DOUBLE_EQ(gaps.all.value(), 2);
  expect_gap(gaps.longest, 2, 1, 0);
}

TEST(StepGaps, OfNothingAreNone) {
  const StepGaps gaps = gaps_of({});
  EXPECT_DOUBLE_EQ(gaps.all.value(), 0);
  expect_gap(gaps.longest, 0, -1, -1);
  EXPECT_TRUE(gaps.streams.empty());
}

}  // namespace
}  // namespace trainyard
