#include "model/median.h"

#include <gtest/gtest.h>

#include <array>

namespace trainyard {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoMiddles) {
  EXPECT_EQ(median(std::array{7.0}), 7);
  EXPECT_EQ(median(std::array{3.0, 1.0}), 2);
  EXPECT_EQ(median(std::array{9.0, 1.0, 4.0}), 4);
  EXPECT_EQ(median(std::array{9.0, 1.0, 4.0, 6.0}), 5);  // (4 + 6) / 2
}

}  // namespace
}  // namespace trainyard
