#include "model/calibration/fit_gemm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/calibration/least_squares.h"
#include "model/cost/kernels/gemm.h"
#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

constexpr std::array<double, 8> kRows = {64, 257, 512, 1025, 2048, 4096, 8192, 16384};
constexpr std::array<double, 8> kSides = {256, 768, 1536, 2048, 4096, 5120, 8192, 16384};

// The times that `device` predicts over a grid of GEMM shapes.
std::vector<GemmSample> measured_on(const Device& device, Dtype dtype, bool with_cast = true) {
  std::vector<GemmSample> samples;
  for (const double m : kRows) {
    for (const double n : kSides) {
      for (const double k : kSides) {
        GemmSample sample{dtype, {m, n, k}, Seconds(0), with_cast};
        sample.time = gemm_sample_time(device, sample);
        samples.push_back(sample);
      }
    }
  }
  return samples;
}

Device without_rates(Device device) {
  device.rates.gemm = {};
  return device;
}

double mean_error(const Device& device, const std::vector<GemmSample>& samples) {
  double sum = 0;
  for (const GemmSample& s : samples) sum += std::abs(gemm_sample_time(device, s) / s.time - 1);
  return sum / static_cast<double>(samples.size());
}

Seconds forward_time(const Device& device, Dtype dtype, const GemmShape& shape) {
  return gemm_pass_times(device, dtype, shape).front();
}

void ignore_progress(double /*done*/) {}

TEST(FitGemm, FindsTheRatesThatMadeTheRows) {
  const Device truth = example_h100();
  Device fitted = without_rates(truth);
  Device at_full_clock = truth;
  at_full_clock.rates.sustained_clock = 1;
  const auto samples = measured_on(at_full_clock, Dtype::bf16);
  ASSERT_TRUE(fit_gemm(fitted, samples, ignore_progress).has_value());
  const GemmRates& found = fitted.rates.of(Dtype::bf16);
  const GemmRates& made = truth.rates.of(Dtype::bf16);
  EXPECT_NEAR(found.per_multiprocessor / made.per_multiprocessor, 1, 0.03);
  EXPECT_NEAR(found.memory_share, made.memory_share, 0.03);
  EXPECT_NEAR(found.overhead.value(), made.overhead.value(), 0.3e-6);
  fitted.rates.sustained_clock = 1;
  EXPECT_LT(mean_error(fitted, samples), 0.01);
}

// A user's first table has only large products, a tenth slower than the device's and with 3 %
// noise. It must not change the times of small products.
TEST(FitGemm, KeepsWhatTheRowsDoNotDetermine) {
  Device truth = example_h100();
  truth.rates.sustained_clock = 1;
  const auto small_or_large = [&](bool large) {
    std::vector<GemmSample> samples = measured_on(truth, Dtype::bf16);
    std::erase_if(samples, [large](const GemmSample& s) {
      return (std::min({s.shape.m, s.shape.n, s.shape.k}) >= 4096) != large;
    });
    return samples;
  };
  std::vector<GemmSample> large = small_or_large(true);
  for (std::size_t i = 0; i < large.size(); ++i) {
    large[i].time *= 1.1 + 0.03 * std::sin(3.7 * static_cast<double>(i));
  }
  while (large.size() < 64) large.push_back(large[large.size() / 2]);
  Device fitted = truth;
  ASSERT_TRUE(fit_gemm(fitted, large, ignore_progress).has_value());
  EXPECT_LT(mean_error(fitted, large), 0.03);
  EXPECT_LT(mean_error(fitted, small_or_large(false)), 0.12);
}

// The times have a smooth effect that the tile model does not know: ±10 % with log₂ n. The fitted
// residual must predict it for shapes halfway between those that it was fitted to.
TEST(FitGemm, CorrectsWhatTheTileModelMissesBetweenItsShapes) {
  Device device = example_h100();
  device.rates.sustained_clock = 1;
  const auto effect = [](GemmSample& s) {
    s.time *= 1 + 0.1 * std::sin(std::log2(s.shape.n) - 10);
  };
  std::vector<GemmSample> seen = measured_on(device, Dtype::bf16);
  std::vector<GemmSample> unseen;
  for (const double n : {1024.0, 3072.0, 6144.0}) {
    for (const double k : {1024.0, 3072.0, 6144.0}) {
      GemmSample sample{Dtype::bf16, {3000, n, k}, Seconds(0)};
      sample.time = gemm_sample_time(device, sample);
      unseen.push_back(sample);
    }
  }
  for (auto* samples : {&seen, &unseen}) std::for_each(samples->begin(), samples->end(), effect);
  const double before = mean_error(device, unseen);
  ASSERT_TRUE(fit_gemm(device, seen, ignore_progress).has_value());
  EXPECT_LT(mean_error(device, unseen), before / 2);
}

TEST(FitGemm, TakesTheCastOfFp8ApartFromTheGemm) {
  Device device = example_h100();
  device.rates.sustained_clock = 1;
  GemmRates& rates = device.rates.gemm[static_cast<std::size_t>(Dtype::fp8)];
  rates.cast_overhead = Seconds(10e-6);
  rates.cast_bytes = 7;
  std::vector<GemmSample> samples = measured_on(device, Dtype::fp8);
  Device fitted = device;
  ASSERT_TRUE(fit_gemm(fitted, samples, ignore_progress).has_value());
  const GemmShape shape{8192, 8192, 8192};
  EXPECT_NEAR(forward_time(fitted, Dtype::fp8, shape) / forward_time(device, Dtype::fp8, shape), 1,
              0.02);
  EXPECT_NEAR(fitted.rates.of(Dtype::fp8).cast_bytes, 7, 1);
  // A document shows four digits of these figures.
  for (const Seconds time :
       {fitted.rates.of(Dtype::fp8).overhead, fitted.rates.of(Dtype::fp8).cast_overhead}) {
    EXPECT_EQ(time.value(), four_digits(time.value()));
  }
}

// If the rows in fp8 were measured without a cast, the fit subtracts no time for one.
TEST(FitGemm, TakesNoCastApartWhereRowsInFp8HaveNone) {
  Device truth = example_h100();
  truth.rates.sustained_clock = 1;
  std::vector<GemmSample> samples = measured_on(truth, Dtype::fp8, false);
  Device fitted = truth;
  ASSERT_TRUE(fit_gemm(fitted, samples, ignore_progress).has_value());
  EXPECT_EQ(fitted.rates.of(Dtype::fp8).cast_overhead, Seconds(0));
  EXPECT_EQ(fitted.rates.of(Dtype::fp8).cast_bytes, 0);
  double sum = 0;
  for (const GemmSample& s : samples) {
    sum += forward_time(fitted, Dtype::fp8, s.shape) / s.time - 1;
  }
  EXPECT_NEAR(sum / static_cast<double>(samples.size()), 0, 0.005);
}

TEST(FitGemm, GivesTheSameBitsTwice) {
  const auto samples = measured_on(example_a100(), Dtype::bf16);
  Device once = without_rates(example_a100());
  Device again = once;
  ASSERT_TRUE(fit_gemm(once, samples, ignore_progress).has_value());
  ASSERT_TRUE(fit_gemm(again, samples, ignore_progress).has_value());
  const GemmRates& a = once.rates.of(Dtype::bf16);
  const GemmRates& b = again.rates.of(Dtype::bf16);
  EXPECT_EQ(a.per_multiprocessor, b.per_multiprocessor);
  EXPECT_EQ(a.residual, b.residual);
}

TEST(FitGemm, SaysOfWhichDtypeThereAreTooFewRows) {
  Device device = example_h100();
  std::vector<GemmSample> samples(59, {Dtype::fp8, {64, 64, 64}, Seconds(1e-5)});
  const auto done = fit_gemm(device, samples, ignore_progress);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().message, "found 59 rows in fp8; allowed: 60 or more of a dtype");
  samples = {{Dtype::bf16, {64, 64, 64}, Seconds(1e-5)}};
  EXPECT_EQ(fit_gemm(device, samples, ignore_progress).error().message,
            "found 1 row in bf16; allowed: 60 or more of a dtype");
}

// A residual multiplies the time of a GEMM: by e^0.1 inside its grid, by 1 far away from it, where
// no measured row supports a correction.
TEST(GemmResidual, CorrectsOnlyShapesNearItsGrid) {
  Device device = example_a100();
  const auto corrected = [&](const GemmShape& shape) {
    device.rates.gemm[static_cast<std::size_t>(Dtype::bf16)].residual = {
        {{10, 11}, {10, 11}, {10, 11}}, std::vector<double>(8, 0.1)};
    return forward_time(device, Dtype::bf16, shape) / tile_model_time(device, Dtype::bf16, shape);
  };
  EXPECT_NEAR(corrected({1024, 1500, 2048}), std::exp(0.1), 1e-12);
  EXPECT_NEAR(corrected({2048 * std::exp2(kResidualReach / 2), 1024, 1024}), std::exp(0.05), 1e-12);
  EXPECT_EQ(corrected({1024, 1024, 1024 * std::exp2(-kResidualReach)}), 1);
  EXPECT_EQ(corrected({1024, 1e6, 1024}), 1);
}

}  // namespace
}  // namespace trainyard
