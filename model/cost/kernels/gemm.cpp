#include "model/cost/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace trainyard {
namespace {

struct Tile {
  double rows, columns;
};
constexpr std::array<Tile, 3> kTiles{{{128, 256}, {128, 128}, {64, 64}}};
constexpr double kLeastSplit = 128;        // k-elements; libraries do not split k further
constexpr double kAlignedRows = 8;         // 16 bytes of 16-bit elements
constexpr double kClockDropFlop = 1.5e12;  // where half of a long kernel's slow-down has set in

// std::ceil of what is not negative, without a call.
double whole_above(double value) {
  constexpr double kNoFraction = 0x1p52;  // from here on a double is a whole number
  const double nearest = (value + kNoFraction) - kNoFraction;
  return nearest < value ? nearest + 1 : nearest;
}

// `value`, moved by `share` of the way to the next whole number.
double rounded_up(double value, double share) {
  return value + share * (whole_above(value) - value);
}

bool is_multiple(double value, double of) { return whole_above(value / of) == value / of; }

// Time of the multiplications with one tile shape. `reduction`: cost of each further split of k.
double tiled_compute(const GemmRates& rates, const Device& device, const GemmShape& g,
                     std::size_t tile, double reduction) {
  const Tile size = kTiles[tile];
  const double sms = device.multiprocessors;
  const double tiles = rounded_up(g.m / size.rows, rates.tile_round) *
                       rounded_up(g.n / size.columns, rates.tile_round);
  const double per_k = 2 * size.rows * size.columns /
                       (rates.per_multiprocessor.value() * rates.tile_efficiency[tile]);
  double splits = 1;
  if (tiles < sms) {
    const double balanced = std::sqrt(per_k * g.k / std::max(reduction, 1e-12));
    splits = std::max(1.0, std::min({balanced, sms / tiles, g.k / kLeastSplit}));
  }
  const double waves = tiles * splits / sms;
  const double rounded = rounded_up(waves, rates.wave_round) + rates.wave_tail;
  return std::max(1.0, rounded) * per_k * (g.k / splits + rates.fill) + reduction * (splits - 1);
}

// (a⁴ + b⁴)^¼ by two square roots.
double join_roofs(double a, double b) {
  const double larger = std::max(a, b);
  if (larger <= 0) return 0;
  const double ratio = std::min(a, b) / larger;
  const double squared = ratio * ratio;
  return larger * std::sqrt(std::sqrt(1 + squared * squared));
}

// Factor on the time of HBM: in repeated runs, operands that fit in the last-level cache are found
// there.
double cache_factor(const GemmRates& rates, Bytes bytes) {
  if (rates.cache.value() <= 0) return 1;
  const double fill = bytes / rates.cache;
  const double steep = fill * fill * fill * fill;
  return (steep + 1 / rates.cache_speed) / (steep + 1);
}

// The tile model's time, corrected by the residual at these coordinates.
Seconds corrected_time(const Device& device, Dtype dtype, const GemmShape& g,
                       std::array<double, 3> coordinates) {
  const ResidualGrid& residual = device.rates.of(dtype).residual;
  const Seconds form = tile_model_time(device, dtype, g);
  return residual.empty() ? form : form * std::exp(residual_at(residual, coordinates));
}

}  // namespace

Flops gemm_flop(const GemmShape& g) { return Flops(2 * g.m * g.n * g.k); }

Bytes gemm_bytes(Dtype dtype, const GemmShape& g) {
  const double result_element = 2;
  return Bytes(bytes_per_element(dtype) * (g.m * g.k + g.k * g.n) + result_element * g.m * g.n);
}

Seconds tile_model_time(const Device& device, Dtype dtype, const GemmShape& g) {
  const GemmRates& rates = device.rates.of(dtype);
  assert(device.supports(dtype) && "make_plan refuses a dtype without a rate");
  const double reduction = rates.split_bytes * g.m * g.n / device.memory_bandwidth.value();
  double compute = std::numeric_limits<double>::max();
  for (std::size_t tile = 0; tile < kTiles.size(); ++tile) {
    compute = std::min(compute, tiled_compute(rates, device, g, tile, reduction));
  }
  const double flop = gemm_flop(g).value();
  compute *= 1 + rates.clock_drop * flop / (flop + kClockDropFlop);
  if (!is_multiple(g.m, kAlignedRows)) compute *= rates.ragged_rows;
  compute /= device.rates.sustained_clock;
  const Bytes bytes = gemm_bytes(dtype, g);
  const double memory = (bytes / (device.memory_bandwidth * rates.memory_share)) / Seconds(1) *
                        cache_factor(rates, bytes);
  return rates.overhead + Seconds(join_roofs(compute, memory));
}

std::array<double, 3> gemm_coordinates(const GemmShape& g) {
  return {std::log2(g.m), std::log2(g.n), std::log2(g.k)};
}

std::array<Seconds, 3> gemm_pass_times(const Device& device, Dtype dtype, const GemmShape& g) {
  const auto [m, n, k] = gemm_coordinates(g);
  return {corrected_time(device, dtype, g, {m, n, k}),
          corrected_time(device, dtype, {g.m, g.k, g.n, g.groups}, {m, k, n}),
          corrected_time(device, dtype, {g.k, g.n, g.m, g.groups}, {k, n, m})};
}

std::array<Seconds, 3> GemmTimeTable::pass_times(Dtype dtype, const GemmShape& g) const {
  return known_.value({dtype, g.m, g.n, g.k},
                      KeyHash().mix(dtype).mix(g.m).mix(g.n).mix(g.k).value(),
                      [&] { return gemm_pass_times(device_, dtype, g); });
}

Seconds activation_cast_time(const Device& device, Dtype dtype, const GemmShape& g) {
  const GemmRates& rates = device.rates.of(dtype);
  return rates.cast_overhead + Bytes(rates.cast_bytes * g.m * g.k) / device.memory_bandwidth;
}

}  // namespace trainyard
