// How the tokens of a sequence are dealt to context-parallel ranks.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

// The number of ranks, their algorithm, and the tokens of each.
class DealtRows : public testing::TestWithParam<std::tuple<int, ContextAlgorithm, int>> {
 protected:
  DealtRows() {
    plan.context_parallel = std::get<0>(GetParam());
    plan.context_parallel_algorithm = std::get<1>(GetParam());
  }
  int part() const { return std::get<2>(GetParam()); }
  std::int64_t length() const { return std::int64_t{plan.context_parallel} * part(); }

  Plan plan;
};

TEST_P(DealtRows, AreFoundFromTheirPositions) {
  std::set<std::int64_t> positions;
  for (int context = 0; context < plan.context_parallel; ++context) {
    for (int row = 0; row < part(); ++row) {
      const std::int64_t position = dealt_position(plan, length(), context, row);
      const DealtRow found = dealt_row(plan, length(), position);
      EXPECT_EQ(found.context, context) << position;
      EXPECT_EQ(found.row, row) << position;
      positions.insert(position);
    }
  }
  // Every token of the sequence is dealt once.
  EXPECT_EQ(static_cast<std::int64_t>(positions.size()), length());
  EXPECT_EQ(*positions.begin(), 0);
  EXPECT_EQ(*positions.rbegin(), length() - 1);
}

INSTANTIATE_TEST_SUITE_P(Plans, DealtRows,
                         testing::Combine(testing::Values(1, 2, 3, 4, 7, 8, 16),
                                          testing::Values(ContextAlgorithm::ring,
                                                          ContextAlgorithm::all_gather,
                                                          ContextAlgorithm::ulysses),
                                          testing::Values(1, 2, 3, 4, 6, 9, 64)));

// Eight tokens in four chunks: rank 0 has the first and the last, rank 1 those between.
TEST(DealtRowsOfARing, AreTheFirstAndTheLastChunkOnTheFirstRank) {
  Plan plan;
  plan.context_parallel = 2;
  const std::vector<int> contexts = {0, 0, 1, 1, 1, 1, 0, 0};
  const std::vector<std::int64_t> rows = {0, 1, 0, 1, 2, 3, 2, 3};
  for (std::size_t position = 0; position < contexts.size(); ++position) {
    const DealtRow found = dealt_row(plan, 8, static_cast<std::int64_t>(position));
    EXPECT_EQ(found.context, contexts[position]) << position;
    EXPECT_EQ(found.row, rows[position]) << position;
  }
}

}  // namespace
}  // namespace trainyard
