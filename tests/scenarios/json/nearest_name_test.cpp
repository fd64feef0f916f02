#include "scenarios/json/nearest_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainyard {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);  // Levenshtein's own example
  EXPECT_EQ(edit_distance("ab", "ba"), 1);           // neighbours swapped: one slip, not two
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("same", "same"), 0);
}

TEST(EditDistance, IsSymmetric) {
  EXPECT_EQ(edit_distance("tensor_paralel", "tensor_parallel"), 1);
  EXPECT_EQ(edit_distance("tensor_parallel", "tensor_paralel"), 1);
}

TEST(NearestName, IsTheOneWithinAThirdOfItsLetters) {
  const std::vector<std::string> known = {"bf16", "fp16", "fp32", "mxfp8"};
  EXPECT_EQ(nearest_name("bf61", known), "bf16");
  EXPECT_EQ(nearest_name("mxpf8", known), "mxfp8");
  EXPECT_EQ(nearest_name("int8", known), "");
}

TEST(NearestName, IsNotSoughtForAWholeDocument) {
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'a'), std::vector<std::string>{"a"}), "");
}

}  // namespace
}  // namespace trainyard
