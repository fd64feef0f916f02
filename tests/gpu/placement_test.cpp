// Which device each rank of a host gets, whether two ranks have the same one, and what CUDA is told
// before it starts.
#include "executor/cuda/placement.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "executor/cuda/cuda_backend.h"
#include "tests/executor/transport/socket_ranks.h"

namespace trainyard {
namespace {

// The placements by rank; `address` is that of a device as the rank sees it.
std::vector<DevicePlacement> placed(
    int ranks, int devices, const std::function<std::string(int rank, int device)>& address) {
  std::vector<DevicePlacement> all(static_cast<std::size_t>(ranks));
  on_socket_ranks(ranks, [&](Transport& transport) {
    const int rank = transport.rank();
    const auto placement =
        place_on_device(transport, devices, [&](int device) { return address(rank, device); });
    ASSERT_TRUE(placement) << placement.error().message;
    all[static_cast<std::size_t>(rank)] = *placement;
  });
  return all;
}

TEST(DevicePlacement, IsOneDeviceEachWhereAllRanksSeeThemAll) {
  const auto all = placed(2, 2, [](int, int device) { return fmt::format("0:{}:0", device); });
  EXPECT_EQ(all[0].device, 0);
  EXPECT_EQ(all[1].device, 1);
  EXPECT_FALSE(all[0].shared);
  EXPECT_FALSE(all[1].shared);
}

TEST(DevicePlacement, IsSharedWhereThereAreFewerDevicesThanRanks) {
  const auto all = placed(3, 2, [](int, int device) { return fmt::format("0:{}:0", device); });
  EXPECT_EQ(all[2].device, 0);
  for (const DevicePlacement& of : all) EXPECT_TRUE(of.shared);
}

// With srun --gpus-per-task=1 each rank sees its own device as the first.
TEST(DevicePlacement, IsNotSharedWhereEachRankSeesAnotherDeviceAlone) {
  const auto all = placed(2, 1, [](int rank, int) { return fmt::format("0:{}:0", rank); });
  for (const DevicePlacement& of : all) {
    EXPECT_EQ(of.device, 0);
    EXPECT_FALSE(of.shared);
  }
}

TEST(DeviceEnvironment, KeepsStreamsApartAndLoadsKernelsAtTheStart) {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  unsetenv("CUDA_MODULE_LOADING");
  EXPECT_FALSE(no_cuda_device());
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "EAGER");
}

TEST(DeviceEnvironment, IsAsTheUserHasSetIt) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
  EXPECT_FALSE(no_cuda_device());
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "8");
}

}  // namespace
}  // namespace trainyard
