#include "model/calibration/fit_collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/model/calibration/no_progress.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;
using namespace literals;

double reduced(CollectiveOperation operation) { return operation == all_reduce ? 2 : 1; }

// Seconds of a ring at 300 GB/s: 4 µs once, and 1 µs per step.
double ring(CollectiveOperation operation, int gpus, double bytes) {
  const double steps = reduced(operation) * (gpus - 1);
  return 4e-6 + steps * 1e-6 + steps / gpus * bytes / 300e9;
}

// Curves of that ring. With `in_switch`, all-reduces of eight devices run in the switch, at about
// twice the ring's rate.
std::vector<CollectiveSample> curves(bool in_switch) {
  std::vector<CollectiveSample> samples;
  for (const auto operation : {all_reduce, all_gather, reduce_scatter}) {
    for (const int gpus : {2, 8}) {
      for (double bytes = 512; bytes <= 0x1p30; bytes *= 2) {
        double time = ring(operation, gpus, bytes);
        if (in_switch && operation == all_reduce && gpus == 8) time = 18e-6 + bytes / 320e9;
        samples.push_back({operation, gpus, Bytes(bytes), Seconds(time)});
      }
    }
  }
  return samples;
}

Device fitted(const std::vector<CollectiveSample>& samples) {
  Device device;
  device.link_bandwidth = 450.0_GBps;
  EXPECT_TRUE(fit_collectives(device, samples, kNoProgress).has_value());
  return device;
}

double time_of(const Device& device, CollectiveOperation operation, int gpus, double bytes) {
  return collective_sample_time(device, {operation, gpus, Bytes(bytes), Seconds(1)}).value();
}

TEST(CollectiveFit, RecoversTheCurvesThatItWasGiven) {
  const Device device = fitted(curves(false));
  for (const CollectiveSample& sample : curves(false)) {
    EXPECT_NEAR(collective_sample_time(device, sample) / sample.time, 1, 0.02);
  }
}

// Only 2 and 8 devices were measured. Times of other numbers follow from the ring's n−1 steps and
// (n−1)/n of the bytes.
TEST(CollectiveFit, ExtendsToNumbersOfDevicesThatWereNotMeasured) {
  const Device device = fitted(curves(false));
  for (const auto operation : {all_reduce, all_gather, reduce_scatter}) {
    for (const int gpus : {3, 4, 5, 6, 7}) {
      for (const double bytes : {1e3, 1e6, 1e9}) {
        EXPECT_NEAR(time_of(device, operation, gpus, bytes) / ring(operation, gpus, bytes), 1, 0.04)
            << gpus << " devices, " << bytes << " bytes";
      }
    }
  }
}

TEST(CollectiveFit, ExtendsBeyondAnNvlinkDomainOfEight) {
  const Device device = fitted(curves(false));
  for (const int gpus : {16, 32, 72}) {
    const double share = (gpus - 1.0) / gpus;
    EXPECT_NEAR(time_of(device, all_gather, gpus, 1e10) / (share * 1e10 / 300e9), 1, 0.06);
    EXPECT_GE(time_of(device, all_gather, gpus, 1e3), time_of(device, all_gather, 8, 1e3));
  }
}

// Among four devices NCCL runs the ring, which all-gather and reduce-scatter show, although eight
// devices reduce faster in the switch.
TEST(CollectiveFit, DoesNotReduceInTheSwitchAmongFour) {
  const Device device = fitted(curves(true));
  for (const double bytes : {1e7, 1e8, 1e9}) {
    EXPECT_NEAR(time_of(device, all_reduce, 4, bytes) / ring(all_reduce, 4, bytes), 1, 0.04);
    EXPECT_NEAR(time_of(device, all_reduce, 8, bytes) / (18e-6 + bytes / 320e9), 1, 0.04);
  }
}

// Eight devices communicate over a path that is a twentieth as fast. Four devices follow the curve
// of two.
TEST(CollectiveFit, KeepsFourOnTheNearSideOfASlowPath) {
  std::vector<CollectiveSample> samples = curves(false);
  for (CollectiveSample& sample : samples) {
    if (sample.gpus == 8) sample.time = sample.time + sample.bytes / 15.0_GBps;
  }
  const Device device = fitted(samples);
  EXPECT_NEAR(time_of(device, all_gather, 4, 1e9) / ring(all_gather, 4, 1e9), 1, 0.05);
  EXPECT_NEAR(time_of(device, all_reduce, 4, 1e9) / ring(all_reduce, 4, 1e9), 1, 0.05);
}

TEST(CollectiveFit, NeverFallsWithTheSizeHoweverNoisyTheRows) {
  std::vector<CollectiveSample> samples = curves(false);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].time = samples[i].time * (i % 3 == 0 ? 1.4 : i % 5 == 0 ? 0.7 : 1.0);
  }
  const Device device = fitted(samples);
  for (const auto operation : {all_reduce, all_gather, reduce_scatter}) {
    for (const int gpus : {2, 4, 8, 72}) {
      double before = 0;
      for (double octave = 0; octave < 36; octave += 0.1) {
        const double now = time_of(device, operation, gpus, std::exp2(octave));
        EXPECT_GE(now, before * (1 - 1e-9)) << gpus << " devices, 2^" << octave;
        before = now;
      }
    }
  }
}

// A row that is far off does not move the fit, even at either end of a curve: the other rows are
// met as well as without it.
TEST(CollectiveFit, IsNotMovedByOneWildRow) {
  const std::vector<CollectiveSample> samples = curves(false);
  for (const std::size_t wild : {0U, 1U, 10U, 21U}) {
    for (const double factor : {1e-3, 5.0, 1e6}) {
      std::vector<CollectiveSample> changed = samples;
      changed[wild].time = changed[wild].time * factor;
      const Device device = fitted(changed);
      for (const CollectiveSample& sample : samples) {
        EXPECT_NEAR(collective_sample_time(device, sample) / sample.time, 1, 0.03)
            << "row " << wild << " times " << factor << ", " << sample.bytes.value() << " bytes";
      }
    }
  }
}

TEST(CollectiveFit, ReplacesOnlyTheOperationsThatWereMeasured) {
  Device device = fitted(curves(false));
  const CollectiveCurve kept{all_to_all, 8, 7.0_us, 400.0_GBps, 0, {}};
  device.collectives.push_back(kept);
  const std::size_t before = device.collectives.size();
  ASSERT_TRUE(fit_collectives(device, curves(false), kNoProgress).has_value());
  EXPECT_EQ(device.collectives.size(), before);
  EXPECT_EQ(std::ranges::count(device.collectives, all_to_all, &CollectiveCurve::operation), 1);
}

// One run of nccl-tests measures one number of devices, so the other groups keep their curves.
TEST(CollectiveFit, KeepsTheGroupsThatWereNotMeasured) {
  Device device = fitted(curves(false));
  const auto time_of_two = [&device] {
    return collective_sample_time(device, {CollectiveOperation::all_reduce, 2, Bytes(1e6), {}});
  };
  const Seconds before = time_of_two();
  std::vector<CollectiveSample> eight = curves(false);
  std::erase_if(eight, [](const CollectiveSample& sample) { return sample.gpus != 8; });
  for (CollectiveSample& sample : eight) sample.time *= 2;
  ASSERT_TRUE(fit_collectives(device, eight, kNoProgress).has_value());
  EXPECT_EQ(time_of_two(), before);
  const CollectiveSample& measured = eight.front();
  EXPECT_NEAR(collective_sample_time(device, measured) / measured.time, 1, 0.05);
}

// A published `all_reduce_perf -b 8 -e 1G -f 2 -g 4` on four H100 SXM with NCCL 2.26. The rows
// below are a few sizes of the tables' curves at 2 and 8 GPUs, which come from another machine.
TEST(CollectiveFit, MeetsAPublishedCurveOfFourH100) {
  struct Row {
    double mib, reduce2, reduce8, gather2, gather8, scatter2, scatter8;
  };
  constexpr std::array<Row, 8> kTable = {{
      {1.0 / 1024, 5.8, 15.6, 5.2, 10.4, 5.1, 10.3},
      {0.25, 8.8, 19.2, 7.6, 13.6, 7.4, 12.2},
      {1, 14.7, 25.4, 11.3, 17.1, 10.7, 14.6},
      {8, 47.3, 78.9, 36.3, 44.9, 32.4, 43.8},
      {64, 254.6, 324.5, 159.2, 208.1, 169.1, 200.8},
      {128, 466.2, 578.7, 292.5, 392.8, 311.5, 382.2},
      {256, 881.3, 1092.1, 548.6, 728.8, 585.1, 721.7},
      {512, 1686.4, 2111.1, 1038.6, 1401.5, 1077.9, 1399.4},
  }};
  std::vector<CollectiveSample> samples;
  for (const Row& row : kTable) {
    const Bytes bytes(row.mib * 1024 * 1024);
    const auto add = [&](CollectiveOperation operation, int gpus, double us) {
      samples.push_back({operation, gpus, bytes, Seconds(us * 1e-6)});
    };
    add(all_reduce, 2, row.reduce2);
    add(all_reduce, 8, row.reduce8);
    add(all_gather, 2, row.gather2);
    add(all_gather, 8, row.gather8);
    add(reduce_scatter, 2, row.scatter2);
    add(reduce_scatter, 8, row.scatter8);
  }
  const Device device = fitted(samples);
  constexpr std::array<std::pair<double, double>, 5> kPublished = {
      {{8, 65.0}, {64, 326.6}, {128, 614.7}, {256, 1184.9}, {512, 2314.9}}};
  for (const auto& [mib, us] : kPublished) {
    EXPECT_NEAR(time_of(device, all_reduce, 4, mib * 1024 * 1024) / (us * 1e-6), 1, 0.08) << mib;
  }
}

}  // namespace
}  // namespace trainyard
