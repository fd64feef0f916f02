#include "model/cost/kernels/memory_bound.h"

#include <gtest/gtest.h>

#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

using namespace literals;

TEST(MemoryBoundTime, IsBytesOverShareOfBandwidthPlusLaunch) {
  const Device h100 = example_h100();  // 0.87 of 3,350 GB/s, 3 µs
  EXPECT_NEAR(memory_bound_time(h100, 1.0_GB).value(), 1e9 / (0.87 * 3350e9) + 3e-6, 1e-12);
  EXPECT_EQ(memory_bound_time(h100, Bytes(0)), Seconds(0));
}

}  // namespace
}  // namespace trainyard
