// How often work is repeated to time it on a device.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "executor/cuda/device_clock.h"
#include "executor/cuda/kernels/kernels.h"

namespace trainyard {
namespace {

// Libraries of matrix products and attention search for a kernel when a shape is new. A long first
// run for this reason does not mean that the runs are timed one by one.
TEST(DeviceClock, TimesShortWorkInARowThoughItsFirstRunIsLong) {
  DeviceClock clock(0);
  const Queue queue = clock.queue();
  const Scratch numbers(queue, 1, 8, ElementType::f32);
  int calls = 0;
  const Timing timing = clock.time_of(
      [&] {
        if (calls++ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        fill(queue, *numbers, 1);
      },
      Seconds(0.1));
  EXPECT_TRUE(clock.status().ok()) << clock.status().message();
  EXPECT_GT(calls, 2 * timing.runs + 2);
}

}  // namespace
}  // namespace trainyard
