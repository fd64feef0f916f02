// The supervisor reads what ranks measured of their collectives as they wrote it.
#include "executor/measure/collective_rank.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

GroupSamples samples_of_many(int collectives) {
  GroupSamples samples{.overlap_slowdown = 0.25, .staged = true};
  for (int i = 0; i < collectives; ++i) {
    const Timing timing{Seconds(0.5 + i), Seconds(0.125), 200, i % 2 == 0 ? 0 : 170};
    samples.collectives.push_back(
        {{CollectiveOperation::send, 2 + i, Bytes(1024), timing.median}, timing});
  }
  return samples;
}

TEST(CollectiveRank, WritesWhatTheSupervisorReads) {
  auto board = Board::create(testing::TempDir(), 9, 100, 1000);
  ASSERT_TRUE(board);
  ASSERT_TRUE(write_samples(samples_of_many(5), *board));
  const GroupSamples read = written_samples(*board);
  EXPECT_EQ(read.overlap_slowdown, 0.25);
  EXPECT_TRUE(read.staged);
  ASSERT_EQ(read.collectives.size(), 5U);
  for (int i = 0; i < 5; ++i) {
    const auto& [sample, timing] = read.collectives[static_cast<std::size_t>(i)];
    EXPECT_EQ(sample.operation, CollectiveOperation::send);
    EXPECT_EQ(sample.gpus, 2 + i);
    EXPECT_EQ(sample.bytes, Bytes(1024));
    EXPECT_EQ(sample.time, Seconds(0.5 + i));
    EXPECT_EQ(timing.median, Seconds(0.5 + i));
    EXPECT_EQ(timing.deviation, Seconds(0.125));
    EXPECT_EQ(timing.runs, 200);
    EXPECT_EQ(timing.outliers, i % 2 == 0 ? 0 : 170);
  }
}

TEST(CollectiveRank, ReadsNothingWhereNothingWasWritten) {
  auto board = Board::create(testing::TempDir(), 9, 100, 1000);
  ASSERT_TRUE(board);
  EXPECT_TRUE(written_samples(*board).collectives.empty());
}

// A board for one operation has less room than the samples of a collective need.
TEST(CollectiveRank, WritesNothingThatTheBoardHasNoRoomFor) {
  auto board = Board::create(testing::TempDir(), 9, 1, 1000);
  ASSERT_TRUE(board);
  const std::int64_t begun = board->begun()[0];
  EXPECT_FALSE(write_samples(samples_of_many(1), *board));
  EXPECT_EQ(board->begun()[0], begun);
}

}  // namespace
}  // namespace trainyard
