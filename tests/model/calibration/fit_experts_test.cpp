#include "model/calibration/fit_experts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/calibration/no_progress.h"
#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

using namespace literals;

Device known_experts() {
  Device device = example_h100();
  device.rates.experts = {5.5_TFLOPps, 30.0_us, 90, 150, 0.9};
  device.rates.experts.lone_share = 0.3;
  device.rates.experts.hidden_passes = 6;
  device.rates.experts.ffn_passes = 0.5;
  device.rates.experts.group_passes = 1.5;
  return device;
}

// The first `spoilt` of every 23 rows take three times as long, as if a bad kernel had been chosen.
std::vector<ExpertSample> expert_samples(const Device& device, std::size_t spoilt) {
  std::vector<ExpertSample> samples;
  for (const double skew : {0.0, 1.01, 1.2}) {
    for (const int experts : {8, 128, 256}) {
      for (const int ranks : {1, 2, 8, 128}) {
        if (ranks > experts) continue;
        for (double tokens = 64; tokens <= 16384; tokens *= 2) {
          for (const double ffn : {768, 2048, 8192}) {
            ExpertSample sample{.tokens = tokens,
                                .hidden = 4096,
                                .ffn = ffn,
                                .experts_per_token = 2,
                                .experts = experts,
                                .expert_parallel = ranks,
                                .skew = skew};
            const double slower = samples.size() % 23 < spoilt ? 3 : 1;
            sample.time = expert_block_time(device, expert_block(sample)) * slower;
            samples.push_back(sample);
          }
        }
      }
    }
  }
  return samples;
}

double mean_error(const Device& device) {
  double sum = 0;
  const auto samples = expert_samples(known_experts(), 0);
  for (const ExpertSample& sample : samples) {
    sum += std::abs(expert_block_time(device, expert_block(sample)) / sample.time - 1);
  }
  return sum / static_cast<double>(samples.size());
}

TEST(ExpertFit, RecoversTheTimesOfSyntheticBlocks) {
  Device device = example_h100();
  ASSERT_TRUE(fit_experts(device, expert_samples(known_experts(), 0), kNoProgress).has_value());
  EXPECT_LT(mean_error(device), 0.01);
  EXPECT_NEAR(device.rates.experts.per_multiprocessor / 5.5_TFLOPps, 1, 0.05);
}

TEST(ExpertFit, IsHardlyMovedByBadlyChosenKernels) {
  Device device = example_h100();
  ASSERT_TRUE(fit_experts(device, expert_samples(known_experts(), 2), kNoProgress).has_value());
  EXPECT_LT(mean_error(device), 0.03);
}

TEST(ExpertFit, FindsTheSameParametersEveryTime) {
  Device once = example_h100();
  Device again = example_h100();
  ASSERT_TRUE(fit_experts(once, expert_samples(known_experts(), 1), kNoProgress).has_value());
  ASSERT_TRUE(fit_experts(again, expert_samples(known_experts(), 1), kNoProgress).has_value());
  EXPECT_EQ(once.rates.experts.residual, again.rates.experts.residual);
  EXPECT_EQ(once.rates.experts.overhead, again.rates.experts.overhead);
}

TEST(ExpertFit, KnowsWhichExpertsHaveNoGate) {
  EXPECT_FALSE(expert_block({.hidden = 2688, .ffn = 1856}).gated);  // Nemotron 3 Nano
  EXPECT_TRUE(expert_block({.hidden = 4096, .ffn = 14336}).gated);  // Mixtral 8x7B
}

TEST(ExpertFit, RefusesAHandfulOfRows) {
  Device device = example_h100();
  EXPECT_FALSE(fit_experts(device, {{.tokens = 64}}, kNoProgress).has_value());
}

}  // namespace
}  // namespace trainyard
