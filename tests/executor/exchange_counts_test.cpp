// How many numbers a collective moves for each member, counted by hand.
#include "executor/exchange_counts.h"

#include <gtest/gtest.h>

#include <limits>

namespace trainyard {
namespace {

TEST(ExchangeCounts, OfPartsAreAlikeButForTheLast) {
  EXPECT_EQ(part_counts(3, 7), (Counts{3, 3, 1}));
  EXPECT_EQ(part_counts(4, 8), (Counts{2, 2, 2, 2}));
  EXPECT_EQ(part_counts(3, 1), (Counts{1, 0, 0}));
}

// Seven parts of 2²⁸ and the rest of 2³¹ − 1. Products of counts and members exceed an int.
TEST(ExchangeCounts, OfPartsHoldForTheLargestCountThereIs) {
  constexpr int kMost = std::numeric_limits<int>::max();
  Counts expected(8, 1 << 28);
  expected.back() -= 1;
  EXPECT_EQ(part_counts(8, kMost), expected);
}

// Five sequences of 8,192 tokens with eight experts each and 7,168 elements per row, half of them
// on each of two ranks.
TEST(ExchangeCounts, OfRoutedRowsGoBeyondAnInt) {
  const Counts elements = scaled_counts(even_counts(2, 5 * 8192 * 8), 7168);
  EXPECT_EQ(elements, Counts(2, std::int64_t{2'348'810'240}));
  EXPECT_EQ(sum_of(elements), std::int64_t{4'697'620'480});
}

TEST(ExchangeCounts, OfRowsAreSumsOverEachMembersExperts) {
  const std::vector<float> by_expert = {1, 2, 0, 4, 5, 6};
  EXPECT_EQ(rows_by_member(3, by_expert), (Counts{3, 4, 11}));
  EXPECT_EQ(rows_by_member(2, by_expert), (Counts{3, 15}));
  EXPECT_EQ(scaled_counts(even_counts(2, 3), 5), (Counts{15, 15}));
  EXPECT_EQ(sum_of({3, 4, 11}), 18);
}

// Two sequences with three tokens per member, and four heads of eight elements divided among two
// members.
TEST(ExchangeCounts, OfHeadsAreBlocksOfOneSequenceAndOnePairOfMembers) {
  const AttentionShape shape{.batch = 2, .query_head_dim = 8};
  const HeadBlocks blocks = head_blocks(shape, 2, 6, 32);
  EXPECT_EQ(blocks.rows(), 6);
  EXPECT_EQ(blocks.columns(), 16);
  EXPECT_EQ(blocks.size(), 96);
  EXPECT_EQ(blocks.column(1), 16);
  EXPECT_EQ(blocks.row(1, 0), 6);
  EXPECT_EQ(blocks.row(1, 1), 9);
  // With one head for two members, both have it.
  const HeadBlocks shared = head_blocks(shape, 2, 6, 8);
  EXPECT_EQ(shared.columns(), 8);
  EXPECT_EQ(shared.column(1), 0);
}

}  // namespace
}  // namespace trainyard
