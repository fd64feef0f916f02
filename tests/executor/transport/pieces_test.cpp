// What is sent in several calls arrives whole, once and in order.
#include "executor/transport/pieces.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace trainyard {
namespace {

using Pieces = std::vector<std::pair<std::int64_t, int>>;

Pieces pieces(std::int64_t size, std::int64_t largest) {
  Pieces list;
  EXPECT_TRUE(in_pieces(size, largest, [&](std::int64_t first, int count) -> Expected<void> {
    list.emplace_back(first, count);
    return {};
  }));
  return list;
}

TEST(Pieces, AreOfTheLargestCountAndARest) {
  EXPECT_EQ(pieces(10, 4), (Pieces{{0, 4}, {4, 4}, {8, 2}}));
  EXPECT_EQ(pieces(8, 4), (Pieces{{0, 4}, {4, 4}}));
  EXPECT_EQ(pieces(1, 4), (Pieces{{0, 1}}));
  EXPECT_EQ(pieces(0, 4), (Pieces{}));
}

// 2^32 bytes, which an int would take for 0; an int holds 2^31 - 1.
TEST(Pieces, FitAnInt) {
  constexpr std::int64_t kInt = 2147483647;
  EXPECT_EQ(pieces(std::int64_t{1} << 32, kLargestCount),
            (Pieces{{0, kInt}, {kInt, kInt}, {2 * kInt, 2}}));
}

TEST(Pieces, EndWithTheOneThatFails) {
  int calls = 0;
  const auto moved = in_pieces(10, 4, [&](std::int64_t first, int) -> Expected<void> {
    ++calls;
    return first == 4 ? Expected<void>(failure("", "no")) : Expected<void>();
  });
  EXPECT_FALSE(moved);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace trainyard
