#include "model/calibration/fit_experts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "model/calibration/fit_residual_grid.h"
#include "model/calibration/least_squares.h"
#include "model/calibration/thin.h"

namespace trainyard {
namespace {

constexpr std::size_t kLeastExpertSamples = 50;
constexpr std::size_t kMostExpertRows = 4000;  // to which the form is fitted
constexpr double kMostOfPeak = 0.89;  // share of the datasheet's peak that balanced rows reach
constexpr std::size_t kExpertParameters = 10;

// Nemotron 3's experts have a squared ReLU and no gate (their published configs).
struct Ungated {
  double hidden, ffn;
};
constexpr std::array<Ungated, 2> kUngated = {{{2688, 1856}, {8192, 5120}}};

bool gated(const ExpertSample& sample) {
  return std::ranges::none_of(kUngated, [&](const Ungated& known) {
    return known.hidden == sample.hidden && known.ffn == sample.ffn;
  });
}

ExpertRates rates_of(std::span<const double> p) {
  ExpertRates rates;
  rates.overhead = Seconds(p[0]);
  rates.per_multiprocessor = FlopsPerSecond(p[1]);
  rates.padding_rows = p[2];
  rates.fill = p[3];
  rates.memory_share = p[4];
  rates.hidden_passes = p[5];
  rates.ffn_passes = p[6];
  rates.group_passes = p[7];
  rates.skew_gain = p[8];
  rates.lone_share = p[9];
  return rates;
}

ExpertRates fit_form(Device device, const std::vector<ExpertSample>& rows) {
  const double peak = kMostOfPeak * device.peak_of(Dtype::bf16).value() / device.multiprocessors;
  const std::array<ParameterBounds, kExpertParameters> bounds = {{{10e-6, 60e-6, true},
                                                                  {0.4 * peak, peak, true},
                                                                  {1, 256, true},
                                                                  {5, 3000, true},
                                                                  {0.2, 1, true},
                                                                  {0.5, 12, true},
                                                                  {0.1, 4, true},
                                                                  {0.02, 6, true},
                                                                  {0.2, 1.5, true},
                                                                  {0.05, 1, true}}};
  const std::vector<std::vector<double>> starts = {
      {30e-6, 0.7 * peak, 32, 100, 0.8, 6, 2, 1, 1, 0.5},
      {20e-6, 0.95 * peak, 64, 300, 0.9, 8, 0.5, 2, 0.9, 0.3}};
  const auto residuals = [&](std::span<const double> parameters, std::span<double> out) {
    device.rates.experts = rates_of(parameters);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      out[i] = std::log(expert_block_time(device, expert_block(rows[i])) / rows[i].time);
    }
  };
  LeastSquaresFit fit =
      fit_least_squares_from(residuals, rows.size(), bounds, starts,
                             {.loss_scale = 0.05, .most_iterations = 60, .tolerance = 1e-5});
  to_four_digits(fit.parameters);
  return rates_of(fit.parameters);
}

ResidualGrid fit_rest(const Device& device, const std::vector<ExpertSample>& samples) {
  ResidualSamples rest;
  for (const ExpertSample& sample : samples) {
    const ExpertBlock block = expert_block(sample);
    const auto at = expert_coordinates(block);
    rest.coordinates.insert(rest.coordinates.end(), at.begin(), at.end());
    rest.residuals.push_back(std::log(sample.time / expert_block_time(device, block)));
  }
  return fit_residual_grid({{-1, 2, 5, 8, 10, 13}, {0, 1, 4, 8}, {5, 7, 9, 11, 14}, {0, 1, 2}},
                           rest,
                           {.smoothness = {0.17, 0.17, 0.17, 0.17},
                            .ridge = 0.08,
                            .loss_scale = 0.05,
                            .relative_to_measured = true});
}

}  // namespace

ExpertBlock expert_block(const ExpertSample& sample) {
  return {.routing = {sample.tokens, sample.experts_per_token, sample.experts, sample.skew},
          .hidden = sample.hidden,
          .ffn = sample.ffn / sample.tensor_parallel,
          .ranks = sample.expert_parallel,
          .gated = gated(sample)};
}

Expected<void> fit_experts(Device& device, const std::vector<ExpertSample>& samples,
                           const std::function<void(double)>& progress) {
  if (samples.size() < kLeastExpertSamples) {
    return failure("experts", "found too few rows; allowed: 50 or more");
  }
  device.rates.experts = fit_form(device, thinned(samples, kMostExpertRows));
  progress(0.5);
  device.rates.experts.residual = fit_rest(device, samples);
  progress(1);
  return {};
}

}  // namespace trainyard
