#include "model/calibration/fit_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "model/calibration/fit_residual_grid.h"
#include "model/calibration/least_squares.h"
#include "model/calibration/thin.h"
#include "model/cost/kernels/attention.h"

namespace trainyard {
namespace {

// Whether the kernel has a window, and a head dimension.
using FormKey = std::pair<bool, int>;
FormKey key_of(const AttentionRates& rates) { return {rates.sliding, rates.head_dim}; }
using SampleGroup = std::vector<const AttentionSample*>;

constexpr std::size_t kMostAttentionRows = 3000;  // of a group, to which the form is fitted
constexpr double kLongSequence = 512;    // shorter rows count half: training uses longer ones
constexpr double kUsualWindowTiles = 2;  // window_tiles is pulled to it: few rows determine it
constexpr std::array<int, 3> kRowTiles = {16, 64, 128};

// The form's parameters in the order of the least squares.
constexpr std::size_t kAttentionParameters = 9;

AttentionRates rates_of(std::span<const double> p, const FormKey& key, int row_tile) {
  AttentionRates rates;
  rates.head_dim = key.second;
  rates.sliding = key.first;
  rates.row_tile = row_tile;
  rates.overhead = Seconds(p[0]);
  rates.per_multiprocessor = FlopsPerSecond(p[1]);
  rates.tail = p[2];
  rates.query_tile = Seconds(p[3]);
  rates.query_traffic = p[4];
  rates.kv_traffic = p[5];
  rates.window_tiles = p[6];
  rates.cache = Bytes(p[7]);
  rates.cached_share = p[8];
  return rates;
}

double weight_of(const AttentionSample& sample) {
  return sample.shape.queries >= kLongSequence ? 1.0 : 0.5;
}

// The rate that the best rows (top 2 %) attain, counting only unmasked arithmetic.
double best_rate(const Device& device, const SampleGroup& group) {
  std::vector<double> rates;
  for (const AttentionSample* sample : group) {
    const AttentionShape& a = sample->shape;
    const double keys = a.sliding ? std::min(a.keys, a.queries) : a.keys / 2;
    const double flop = 4 * a.batch * a.heads * a.queries * keys * a.query_head_dim;
    rates.push_back(flop / sample->time.value() / device.multiprocessors);
  }
  const auto nth = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() * 49 / 50);
  std::ranges::nth_element(rates, nth);
  return *nth;
}

struct AttentionProblem {
  Device device;  // its attention table is what is tried
  SampleGroup rows;
  FormKey key;
  int row_tile = 128;
};

void residuals(AttentionProblem& problem, std::span<const double> parameters,
               std::span<double> out) {
  problem.device.rates.attention.assign(1, rates_of(parameters, problem.key, problem.row_tile));
  for (std::size_t i = 0; i < problem.rows.size(); ++i) {
    const AttentionSample& sample = *problem.rows[i];
    const Seconds time = attention_prefill_time(problem.device, sample.shape);
    out[i] = weight_of(sample) * std::log(time / sample.time);
  }
  out[problem.rows.size()] = 0.5 * std::log(parameters[6] / kUsualWindowTiles);
}

LeastSquaresFit fit_form(AttentionProblem& problem) {
  const double best = best_rate(problem.device, problem.rows);
  const std::array<ParameterBounds, kAttentionParameters> bounds = {{{2e-6, 40e-6, true},
                                                                     {0.5 * best, 4 * best, true},
                                                                     {0.05, 5, true},
                                                                     {1e-8, 30e-6, true},
                                                                     {0.5, 10, true},
                                                                     {0.5, 20, true},
                                                                     {0.3, 4, true},
                                                                     {5e6, 400e6, true},
                                                                     {0.05, 1, true}}};
  const std::vector<std::vector<double>> starts = {
      {10e-6, 1.1 * best, 0.5, 1e-6, 2, 2, 1.5, 60e6, 0.5},
      {12e-6, 1.5 * best, 1.0, 0.3e-6, 3, 4, 1.5, 60e6, 0.9}};
  return fit_least_squares_from(
      [&](auto parameters, auto out) { residuals(problem, parameters, out); },
      problem.rows.size() + 1, bounds, starts,
      {.loss_scale = 0.08, .most_iterations = 40, .tolerance = 1e-5});
}

ResidualGrid fit_rest(const Device& device, const SampleGroup& group) {
  ResidualSamples samples;
  for (const AttentionSample* sample : group) {
    const auto at = attention_coordinates(sample->shape);
    samples.coordinates.insert(samples.coordinates.end(), at.begin(), at.end());
    samples.residuals.push_back(
        std::log(sample->time / attention_prefill_time(device, sample->shape)));
  }
  return fit_residual_grid({{0, 4, 6, 7, 8, 9, 10, 12, 14}, {0, 2, 4, 6, 8, 10, 12, 14}, {0, 3, 6}},
                           samples,
                           {.smoothness = {0.05, 0.05, 0.2}, .ridge = 0.02, .loss_scale = 0.08});
}

int widest_window(const SampleGroup& group) {
  const auto keys = [](const AttentionSample* sample) { return sample->shape.keys; };
  return static_cast<int>(keys(*std::ranges::max_element(group, {}, keys)));
}

AttentionRates fit_group(const Device& device, const FormKey& key, const SampleGroup& group) {
  AttentionProblem problem{device, thinned(group, kMostAttentionRows), key, 128};
  LeastSquaresFit best;
  best.cost = std::numeric_limits<double>::infinity();
  int row_tile = kRowTiles.back();
  for (const int tile : kRowTiles) {
    problem.row_tile = tile;
    LeastSquaresFit fit = fit_form(problem);
    if (fit.cost >= best.cost) continue;
    best = std::move(fit);
    row_tile = tile;
  }
  to_four_digits(best.parameters);
  AttentionRates rates = rates_of(best.parameters, key, row_tile);
  problem.device.rates.attention.assign(1, rates);
  rates.residual = fit_rest(problem.device, group);
  if (key.first) rates.window = widest_window(group);
  return rates;
}

}  // namespace

Expected<void> fit_attention(Device& device, const std::vector<AttentionSample>& samples,
                             const std::function<void(double)>& progress) {
  std::map<FormKey, SampleGroup> groups;
  for (const AttentionSample& sample : samples) {
    const int head_dim = static_cast<int>(sample.shape.query_head_dim);
    groups[{sample.shape.sliding, head_dim}].push_back(&sample);
  }
  std::erase_if(groups,
                [](const auto& entry) { return entry.second.size() < kLeastAttentionSamples; });
  if (groups.empty() || groups.begin()->first.first) {
    return failure("attention",
                   "found too few rows without a window; allowed: 20 of a head "
                   "dimension or more");
  }
  std::vector<AttentionRates> fitted;
  for (const auto& [key, group] : groups) {
    fitted.push_back(fit_group(device, key, group));
    progress(static_cast<double>(fitted.size()) / static_cast<double>(groups.size()));
  }
  std::vector<AttentionRates>& rates = device.rates.attention;
  // Rates of head dimensions that the table does not measure stay.
  std::erase_if(rates, [&](const AttentionRates& known) { return groups.contains(key_of(known)); });
  std::ranges::move(fitted, std::back_inserter(rates));
  std::ranges::sort(rates, {}, key_of);
  return {};
}

}  // namespace trainyard
