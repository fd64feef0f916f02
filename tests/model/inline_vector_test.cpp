#include "model/inline_vector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace trainyard {
namespace {

using ::testing::ElementsAre;

TEST(InlineVector, HoldsWhatWasPushedInOrder) {
  InlineVector<int, 3> numbers;
  EXPECT_TRUE(numbers.empty());
  for (const int number : {7, 8, 9}) numbers.push_back(number);
  EXPECT_THAT(std::vector(numbers.begin(), numbers.end()),
              ElementsAre(7, 8, 9));  // exactly at its capacity
}

#ifndef NDEBUG
TEST(InlineVectorDeathTest, RefusesOneMoreThanItsCapacity) {
  InlineVector<int, 1> numbers;
  numbers.push_back(1);
  EXPECT_DEATH(numbers.push_back(2), "Assertion");
}
#endif

}  // namespace
}  // namespace trainyard
