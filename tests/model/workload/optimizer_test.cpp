#include "model/workload/optimizer.h"

#include <gtest/gtest.h>

#include "model/workload/precision.h"

namespace trainyard {
namespace {

// Handbook §4: Adam in mixed precision reads gradient 4, master 4, moments 8 and writes master 4,
// moments 8 and the 16-bit weight 2: 30 bytes a parameter.
TEST(Optimizer, AdamMovesThirtyBytesAParameter) {
  const PrecisionRecipe& recipe = *find_precision_recipe("bf16");
  const double moments = find_optimizer("adam")->moment_bytes;
  EXPECT_EQ(4 + 2 * (recipe.master_weight_bytes + moments) + recipe.weight_bytes, 30);
}

TEST(Optimizer, SgdKeepsOneMoment) {
  EXPECT_EQ(2 * find_optimizer("sgd")->moment_bytes, find_optimizer("adamw")->moment_bytes);
}

TEST(Optimizer, IsFoundByNameOnly) {
  for (const Optimizer& optimizer : optimizers()) {
    EXPECT_EQ(find_optimizer(optimizer.name), &optimizer);
  }
  EXPECT_EQ(find_optimizer("lion"), nullptr);
}

}  // namespace
}  // namespace trainyard
