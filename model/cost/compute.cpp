#include "model/cost/compute.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace trainyard {
namespace {

struct Tile {
  double rows, columns;
};
constexpr std::array<Tile, 3> kTiles{{{128, 256}, {128, 128}, {64, 64}}};
constexpr double kAttentionTile = 128;
constexpr double kLeastSplit = 128;        // k-elements; libraries do not split k further
constexpr double kClockDropFlop = 1.5e12;  // where half of a long kernel's slow-down has set in

const GemmRates& rates_of(const Device& device, Dtype dtype) {
  return device.rates.gemm[static_cast<std::size_t>(dtype)];
}

Dtype gemm_dtype(const PrecisionRecipe& recipe, OperatorKind kind) {
  const bool outside_layers = kind == OperatorKind::output_head || kind == OperatorKind::router;
  return outside_layers ? recipe.head_gemm : recipe.layer_gemm;
}

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

AttentionRates interpolate(const AttentionRates& a, const AttentionRates& b, double head_dim) {
  const double share = (head_dim - a.head_dim) / (b.head_dim - a.head_dim);
  const auto between = [&](auto x, auto y) { return x + (y - x) * share; };
  return {static_cast<int>(head_dim),          between(a.per_multiprocessor, b.per_multiprocessor),
          between(a.overhead, b.overhead),     between(a.tail, b.tail),
          between(a.query_tile, b.query_tile), between(a.window_tiles, b.window_tiles)};
}

AttentionRates attention_rates(const Device& device, double head_dim) {
  const auto& table = device.rates.attention;
  assert(!table.empty());
  if (head_dim <= table.front().head_dim) return table.front();
  for (std::size_t i = 1; i < table.size(); ++i) {
    if (head_dim <= table[i].head_dim) return interpolate(table[i - 1], table[i], head_dim);
  }
  return table.back();
}

struct ScoreTiles {
  double longest_row;  // key tiles of the query tile that sees most
  double of_head;      // of all query tiles together
};

// Causal masking leaves a triangle; a window of it a band with a triangular start. Under context
// parallelism a rank's `rows` query tiles see, dealt zig-zag, their share of the whole triangle.
ScoreTiles score_tiles(const AttentionShape& a, double rows, double window_tiles) {
  const double keys = std::ceil(a.keys / kAttentionTile);
  if (!a.sliding) return {keys, rows * (keys + 1) / 2};
  const double band = std::max(1.0, std::min(rows, a.keys / kAttentionTile + window_tiles));
  return {band, band * (band + 1) / 2 + (rows - band) * band};
}

// Each weight's main gradient is read and written by the GEMM that accumulates into it, or by a
// kernel of its own that also reads what the GEMM wrote.
Bytes accumulation_traffic(const Stack& stack, double weights) {
  const double gradient = stack.gradient_bytes;
  return Bytes(weights * (stack.gradient_accumulation_fused ? gradient : 2 * gradient + 4));
}

OperatorTime gemm_operator_time(const Device& device, const Training& training,
                                const Operator& op) {
  const Dtype dtype = gemm_dtype(training.precision, op.kind);
  const GemmShape& g = op.gemm;
  const auto time = [&](const GemmShape& shape) {
    return op.cls == OperatorClass::grouped_gemm ? grouped_gemm_time(device, dtype, shape)
                                                 : gemm_time(device, dtype, shape);
  };
  const double factor = training.stack.memory_traffic;
  const Seconds accumulation = accumulation_traffic(training.stack, op.weights) /
                               (device.memory_bandwidth * device.rates.memory);
  return {time(g) + memory_bound_time(device, op.forward_traffic * factor),
          time({g.m, g.k, g.n, g.groups}) + memory_bound_time(device, op.backward_traffic * factor),
          time({g.k, g.n, g.m, g.groups}) + accumulation};
}

// Batched GEMMs and a softmax over the score matrix in memory.
OperatorTime unfused_attention_time(const Device& device, const Training& training,
                                    const Operator& op) {
  const FlopsPerSecond rate = device.peak_of(Dtype::fp16) * device.rates.batched_gemm;
  const double factor = training.stack.memory_traffic;
  return {op.forward / rate + memory_bound_time(device, op.forward_traffic * factor),
          2 * op.forward / rate + memory_bound_time(device, op.backward_traffic * factor),
          Seconds(0)};
}

OperatorTime flash_attention_time(const Device& device, const Training& training,
                                  const Operator& op) {
  const Stack& stack = training.stack;
  const bool hopper = device.supports(Dtype::fp8) && stack.attention_speed_hopper > 0;
  const double speed = hopper ? stack.attention_speed_hopper : stack.attention_speed;
  const Seconds forward = attention_time(device, op.attention, speed);
  return {forward, forward * stack.attention_backward, Seconds(0)};
}

}  // namespace

Seconds gemm_time(const Device& device, Dtype dtype, const GemmShape& g) {
  const GemmRates& rates = rates_of(device, dtype);
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

Seconds grouped_gemm_time(const Device& device, Dtype dtype, const GemmShape& g) {
  if (g.m <= 0) return Seconds(0);
  const ExpertRates& rates = device.rates.experts;
  // Measured in 16 bits; other dtypes by the ratio of their dense rates.
  const double ratio =
      rates_of(device, dtype).per_multiprocessor / rates_of(device, Dtype::bf16).per_multiprocessor;
  const double rows = (g.m + rates.padding_rows) * g.groups;
  const double rate = rates.per_multiprocessor.value() * ratio * device.multiprocessors *
                      device.rates.sustained_clock;
  const double compute = 2 * rows * (g.k + rates.fill) * g.n / rate;
  const double weights = bytes_per_element(dtype) * g.groups * g.k * g.n /
                         (rates.memory_share * device.memory_bandwidth.value());
  // The block's overhead covers two GEMMs, activation and permutation.
  return rates.overhead / 4 + Seconds(std::hypot(compute, weights));
}

Seconds attention_time(const Device& device, const AttentionShape& a, double speed) {
  const double head_dim = (a.query_head_dim + a.value_head_dim) / 2;
  const AttentionRates rates = attention_rates(device, head_dim);
  const double sms = device.multiprocessors;
  const double rows = std::ceil(a.queries / kAttentionTile);
  const ScoreTiles tiles = score_tiles(a, rows, rates.window_tiles);
  const double heads = a.batch * a.heads;
  const double tile = 4 * kAttentionTile * kAttentionTile * head_dim /
                      (rates.per_multiprocessor.value() * speed * device.rates.sustained_clock);
  const double compute =
      tile *
      std::max(heads * tiles.of_head / sms + rates.tail * tiles.longest_row, tiles.longest_row);
  const double queries = rates.query_tile.value() * head_dim / kAttentionTile * heads * rows / sms;
  const double elements =
      a.batch * (a.heads * a.queries + a.kv_heads * a.keys) * (a.query_head_dim + a.value_head_dim);
  const double traffic = 2 * elements / device.memory_bandwidth.value();
  return rates.overhead + Seconds(compute + queries + traffic);
}

Seconds memory_bound_time(const Device& device, Bytes traffic) {
  if (traffic.value() <= 0) return Seconds(0);
  return traffic / (device.memory_bandwidth * device.rates.memory) + device.rates.launch;
}

OperatorTime operator_time(const Device& device, const Training& training, const Operator& op) {
  switch (op.cls) {
    case OperatorClass::gemm:
    case OperatorClass::grouped_gemm:
      return gemm_operator_time(device, training, op);
    case OperatorClass::attention:
      return training.stack.flash_attention ? flash_attention_time(device, training, op)
                                            : unfused_attention_time(device, training, op);
    case OperatorClass::memory_bound:
      break;
  }
  const double factor = training.stack.memory_traffic;
  return {memory_bound_time(device, op.forward_traffic * factor),
          memory_bound_time(device, op.backward_traffic * factor), Seconds(0)};
}

}  // namespace trainyard
