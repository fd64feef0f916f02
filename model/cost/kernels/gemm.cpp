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
constexpr double kClockDropFlop = 1.5e12;  // where half of a long kernel's slow-down has set in

// Time of the multiplications with one tile shape. `reduction`: cost of each further split of k.
double tiled_compute(const GemmRates& rates, const Device& device, const GemmShape& g,
                     std::size_t tile, double reduction) {
  const Tile size = kTiles[tile];
  const double sms = device.multiprocessors;
  const double tiles = std::ceil(g.m / size.rows) * std::ceil(g.n / size.columns);
  const double per_k = 2 * size.rows * size.columns /
                       (rates.per_multiprocessor.value() * rates.tile_efficiency[tile]);
  double splits = 1;
  if (tiles < sms) {
    const double balanced = std::sqrt(per_k * g.k / std::max(reduction, 1e-12));
    splits = std::max(1.0, std::min({balanced, sms / tiles, g.k / kLeastSplit}));
  }
  const double waves = tiles * splits / sms;
  const double rounded = waves + rates.wave_round * (std::ceil(waves) - waves) + rates.wave_tail;
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

}  // namespace

Seconds gemm_time(const Device& device, Dtype dtype, const GemmShape& g) {
  const GemmRates& rates = device.rates.of(dtype);
  assert(device.supports(dtype) && "make_plan refuses a dtype without a rate");
  const double bandwidth = device.memory_bandwidth.value();
  const double reduction = rates.split_bytes * g.m * g.n / bandwidth;
  double compute = std::numeric_limits<double>::max();
  for (std::size_t tile = 0; tile < kTiles.size(); ++tile) {
    compute = std::min(compute, tiled_compute(rates, device, g, tile, reduction));
  }
  const double flop = 2 * g.m * g.n * g.k;
  compute *= 1 + rates.clock_drop * flop / (flop + kClockDropFlop);
  compute /= device.rates.sustained_clock;
  const double element = bytes_per_element(dtype);
  const double output_element = 2;
  const double memory = (element * (g.m * g.k + g.k * g.n) + output_element * g.m * g.n) /
                        (rates.memory_share * bandwidth);
  return rates.overhead + Seconds(join_roofs(compute, memory));
}

}  // namespace trainyard
