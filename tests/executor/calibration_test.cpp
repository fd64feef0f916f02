// What a calibrated device has as its link, of samples made by hand.
#include "executor/calibration.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

// 1 TFLOP/s and a microsecond for each call; copies at 1 TB/s.
HostSamples plain_samples() {
  HostSamples samples;
  samples.copy = BytesPerSecond(1e12);
  samples.attention_backward = 2;
  for (const double m : {64.0, 256.0, 512.0, 1024.0}) {
    for (const double n : {64.0, 256.0, 512.0, 1024.0}) {
      for (const double k : {64.0, 256.0, 512.0, 1024.0}) {
        samples.gemm.push_back({Dtype::fp32, {m, n, k}, Seconds(1e-6 + 2 * m * n * k * 1e-12)});
      }
    }
  }
  for (int i = 1; i <= 24; ++i) {
    const double tokens = 64.0 * i;
    const AttentionShape shape{.batch = 1,
                               .heads = 4,
                               .kv_heads = 4,
                               .queries = tokens,
                               .keys = tokens,
                               .query_head_dim = 64,
                               .value_head_dim = 64};
    samples.attention.push_back(
        {Dtype::fp32, shape, Seconds(1e-6 + 2 * 4 * tokens * tokens * 64 * 1e-12)});
  }
  for (const double bytes : {1e4, 1e6, 1e8}) {
    samples.traffic.push_back({Bytes(bytes), Seconds(1e-6 + bytes * 1e-12)});
  }
  return samples;
}

double link_of(const DeviceFrame& frame) {
  const auto device = fitted_device(plain_samples(), {}, frame);
  EXPECT_TRUE(device) << device.error().message;
  return device ? device->link_bandwidth.value() : 0;
}

TEST(CalibratedDevice, HasTheLinkThatWasMeasuredWithoutCollectives) {
  EXPECT_EQ(link_of({.memory = Bytes(1e9), .link = BytesPerSecond(25e9)}), 25e9);
}

TEST(CalibratedDevice, HasACopyAsItsLinkWhereNothingIsKnownOfIt) {
  EXPECT_EQ(link_of({.memory = Bytes(1e9)}), 1e12);
}

}  // namespace
}  // namespace trainyard
