#include "model/cost/kernels/experts.h"

#include <gtest/gtest.h>

#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

TEST(GroupedGemmTime, ReadsEveryExpertsWeightsWhenTokensAreFew) {
  // 64 experts of 7168×2048 in 16 bits, one row each: 1.88 GB of weights at 1 TB/s.
  const Seconds time = grouped_gemm_time(ideal_device(), Dtype::bf16, {1, 2048, 7168, 64});
  EXPECT_GE(time.value(), 2.0 * 64 * 7168 * 2048 / 1e12);
}

}  // namespace
}  // namespace trainyard
