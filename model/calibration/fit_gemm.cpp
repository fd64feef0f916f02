#include "model/calibration/fit_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "model/calibration/fit_gemm_residual.h"
#include "model/calibration/least_squares.h"
#include "model/cost/kernels/gemm.h"

namespace trainyard {
namespace {

// Bounds and starts of one parameter of the tile model, in the order in which `set_rates` takes
// them.
struct FittedRange {
  double least, most;
  std::array<double, 3> starts;
};
constexpr std::array<FittedRange, 16> kRanges = {{
    {0.8, 2.5, {1.1, 1.3, 1.2}},     // per_multiprocessor, over the best measured rate
    {1.5, 15, {3, 3, 3}},            // overhead, µs
    {5, 1200, {100, 250, 150}},      // fill
    {0.3, 1.2, {0.8, 0.7, 0.8}},     // memory_share
    {0.01, 1, {0.35, 0.6, 0.1}},     // wave_round
    {0.002, 1.5, {0.05, 0.4, 0.2}},  // wave_tail
    {1e-4, 0.45, {0.05, 0.2, 0.1}},  // clock_drop
    {0.5, 1, {0.95, 0.9, 0.95}},     // tile_efficiency of 128×128
    {0.4, 1, {0.95, 0.9, 0.9}},      // tile_efficiency of 64×64
    {0.08, 1000, {16, 160, 64}},     // split_bytes
    {0.02, 1, {0.8, 0.5, 0.9}},      // tile_round
    {1, 256, {32, 64, 96}},          // cache, MB
    {1, 12, {1.5, 3, 2}},            // cache_speed
    {0.85, 1.2, {1, 1, 1}},          // ragged_rows
    {0.3, 40, {9, 9, 9}},            // cast_overhead, µs
    {1, 20, {6.5, 8, 8}},            // cast_bytes
}};
constexpr std::size_t kPlainParameters = 14;  // without the cast
constexpr std::size_t kOverhead = 1;
constexpr std::size_t kMostGemmRows = 5000;  // of each dtype, for the tile model
constexpr std::size_t kFewestRows = 60;
constexpr double kSmallWeight = 0.5;  // of a row under kLargeGemmFlop
constexpr double kMicro = 1e-6;

bool is_large(const GemmSample& sample) {
  return gemm_flop(sample.shape).value() >= kLargeGemmFlop;
}

// A key that is the same for all rows with one weight matrix [k×n].
std::uint64_t weight_shape(const GemmShape& g) {
  return static_cast<std::uint64_t>(g.n) << 24U | static_cast<std::uint64_t>(g.k);
}

void set_rates(std::span<const double> x, GemmRates& rates) {
  rates.per_multiprocessor = FlopsPerSecond(x[0]);
  rates.overhead = Seconds(x[1] * kMicro);
  rates.fill = x[2];
  rates.memory_share = x[3];
  rates.wave_round = x[4];
  rates.wave_tail = x[5];
  rates.clock_drop = x[6];
  rates.tile_efficiency = {1, x[7], x[8]};
  rates.split_bytes = x[9];
  rates.tile_round = x[10];
  rates.cache = Bytes(x[11] * 1e6);
  rates.cache_speed = x[12];
  rates.ragged_rows = x[13];
  if (x.size() == kPlainParameters) return;
  rates.cast_overhead = Seconds(x[14] * kMicro);
  rates.cast_bytes = x[15];
}

// As `set_rates` takes them.
std::vector<double> parameters_of(const GemmRates& rates) {
  return {rates.per_multiprocessor.value(),
          rates.overhead.value() / kMicro,
          rates.fill,
          rates.memory_share,
          rates.wave_round,
          rates.wave_tail,
          rates.clock_drop,
          rates.tile_efficiency[1],
          rates.tile_efficiency[2],
          rates.split_bytes,
          rates.tile_round,
          rates.cache.value() / 1e6,
          rates.cache_speed,
          rates.ragged_rows,
          rates.cast_overhead.value() / kMicro,
          rates.cast_bytes};
}

// The best rate of a multiprocessor in the rows, without the fastest 0.1 %.
double best_rate(const Device& device, const std::vector<GemmSample>& samples) {
  std::vector<double> rates;
  rates.reserve(samples.size());
  for (const GemmSample& s : samples)
    rates.push_back(gemm_flop(s.shape) / s.time / FlopsPerSecond(1));
  const auto high = rates.begin() + static_cast<std::ptrdiff_t>((rates.size() - 1) * 999 / 1000);
  std::nth_element(rates.begin(), high, rates.end());
  return *high / device.multiprocessors;
}

// At most kMostGemmRows of the samples, evenly spread over the list.
std::vector<GemmSample> thinned(const std::vector<GemmSample>& samples) {
  std::vector<GemmSample> some;
  const std::size_t kept = std::min(samples.size(), kMostGemmRows);
  for (std::size_t i = 0; i < kept; ++i) some.push_back(samples[i * samples.size() / kept]);
  return some;
}

// Rows of large products alone say next to nothing about overhead, memory or tails. So each
// parameter except the rate is pulled to what the device had: a factor of e costs as much as this
// root mean square of all rows' errors.
constexpr double kPriorWeight = 0.01;

struct Search {
  std::vector<ParameterBounds> bounds;
  std::vector<std::vector<double>> starts;
  std::vector<double> prior;  // what the device had; empty: it had no rates
};

// `overhead`: a value fitted for another dtype, in µs, which is kept. `had`: the device's old
// rates.
Search search_of(const GemmRates& had, double rate, bool with_cast,
                 std::optional<double> overhead) {
  Search search;
  const std::size_t size = with_cast ? kRanges.size() : kPlainParameters;
  search.starts.resize(kRanges.front().starts.size());
  for (std::size_t i = 0; i < size; ++i) {
    FittedRange range = kRanges[i];
    const double scale = i == 0 ? rate : 1;
    if (i == kOverhead && overhead) range = {*overhead, *overhead * (1 + 1e-9), {}};
    search.bounds.push_back({range.least * scale, range.most * scale, true});
    for (std::size_t s = 0; s < search.starts.size(); ++s) {
      search.starts[s].push_back(range.starts[s] * scale);
    }
  }
  if (had.per_multiprocessor.value() > 0) {
    search.prior = parameters_of(had);
    search.prior.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      search.prior[i] = std::clamp(search.prior[i], search.bounds[i].least, search.bounds[i].most);
    }
    search.starts.push_back(search.prior);
  }
  return search;
}

void fit_tiles(Device& device, const std::vector<GemmSample>& all, const Search& search) {
  const std::vector<GemmSample> samples = thinned(all);
  const Dtype dtype = samples.front().dtype;
  GemmRates& rates = device.rates.gemm[static_cast<std::size_t>(dtype)];
  const double held = kPriorWeight * std::sqrt(static_cast<double>(samples.size()));
  const ResidualFunction residuals = [&](std::span<const double> x, std::span<double> r) {
    set_rates(x, rates);
    for (std::size_t i = 0; i < search.prior.size(); ++i) {
      r[samples.size() + i] = i == 0 ? 0 : held * std::log(x[i] / search.prior[i]);
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double ratio = gemm_sample_time(device, samples[i]) / samples[i].time;
      r[i] = (is_large(samples[i]) ? 1 : kSmallWeight) * std::log(ratio);
    }
  };
  LeastSquaresFit fit =
      fit_least_squares_from(residuals, samples.size() + search.prior.size(), search.bounds,
                             search.starts, {.most_iterations = 60});
  to_four_digits(fit.parameters);
  set_rates(fit.parameters, rates);
  // A product with 1e-6 need not be the number nearest to its digits.
  rates.overhead = Seconds(four_digits(rates.overhead.value()));
  rates.cast_overhead = Seconds(four_digits(rates.cast_overhead.value()));
}

void fit_rest(Device& device, const std::vector<GemmSample>& samples) {
  std::vector<GemmResidualRow> rows;
  rows.reserve(samples.size());
  for (const GemmSample& s : samples) {
    rows.push_back(
        {s.shape, std::log(s.time / gemm_sample_time(device, s)), weight_shape(s.shape)});
  }
  device.rates.gemm[static_cast<std::size_t>(samples.front().dtype)].residual =
      fit_gemm_residual(rows);
}

bool carries_cast(const GemmSample& s) {
  return s.with_cast && (s.dtype == Dtype::fp8 || s.dtype == Dtype::fp4);
}

void fit_dtype(Device& device, const std::vector<GemmSample>& samples) {
  const Dtype dtype = samples.front().dtype;
  const bool with_cast = carries_cast(samples.front());
  std::optional<double> overhead;
  if (with_cast && device.supports(Dtype::bf16)) {
    overhead = device.rates.of(Dtype::bf16).overhead.value() / kMicro;
  }
  const GemmRates had =
      std::exchange(device.rates.gemm[static_cast<std::size_t>(dtype)], GemmRates{});
  fit_tiles(device, samples, search_of(had, best_rate(device, samples), with_cast, overhead));
  fit_rest(device, samples);
}

}  // namespace

Seconds gemm_sample_time(const Device& device, const GemmSample& s) {
  const double residual = residual_at(device.rates.of(s.dtype).residual, gemm_coordinates(s.shape));
  const Seconds cast = s.with_cast ? activation_cast_time(device, s.dtype, s.shape) : Seconds(0);
  return (tile_model_time(device, s.dtype, s.shape) + cast) * std::exp(residual);
}

Expected<void> fit_gemm(Device& device, const std::vector<GemmSample>& samples,
                        const std::function<void(double)>& progress) {
  Device fitted = device;
  fitted.rates.sustained_clock = 1;  // the tables are of short runs
  int done = 0;
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp8, Dtype::fp32}) {
    std::vector<GemmSample> own;
    std::ranges::copy_if(samples, std::back_inserter(own),
                         [dtype](const GemmSample& s) { return s.dtype == dtype; });
    progress(++done / 4.0);
    if (own.empty()) continue;
    if (own.size() < kFewestRows) {
      return failure("",
                     fmt::format("found {} row{} in {}; allowed: {} or more of a dtype", own.size(),
                                 own.size() == 1 ? "" : "s", name_of(dtype), kFewestRows));
    }
    fit_dtype(fitted, own);
    if (dtype == Dtype::bf16)
      fitted.rates.gemm[static_cast<std::size_t>(Dtype::fp16)] = fitted.rates.of(dtype);
  }
  device.rates.gemm = fitted.rates.gemm;
  return {};
}

}  // namespace trainyard
