#include "model/cost/kernels/attention.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <span>

namespace trainyard {
namespace {

constexpr double kTile = 128;           // queries, and keys, of a tile of scores
constexpr double kCacheSlope = 4;       // how sharply traffic outgrows the last-level cache
constexpr double kMeasuredElement = 2;  // bytes

double mean_head_dim(const AttentionShape& a) { return (a.query_head_dim + a.value_head_dim) / 2; }

double correction(const AttentionRates& rates, const AttentionShape& a) {
  if (rates.residual.empty()) return 1;
  return std::exp(residual_at(rates.residual, attention_coordinates(a)));
}

// Tiles of 128×128 scores of one head.
struct ScoreTiles {
  double rows;         // rows of tiles
  double longest_row;  // key tiles of the row with the most
  double of_head;      // key tiles of all rows
};

double rows_of_sequence(const AttentionShape& a) { return a.context_ranks * a.queries; }

// Causal masking leaves a triangle; with a sliding window a band of it with a triangular start.
// Under context parallelism rows are dealt zig-zag, so a rank has an equal share of the tiles.
ScoreTiles score_tiles(const AttentionRates& rates, const AttentionShape& a) {
  const double row_tile = rates.row_tile;
  const double step = row_tile / kTile;
  const auto in_tiles = [&](double tokens) { return std::ceil(tokens / row_tile) * step; };
  const double rows = in_tiles(a.queries);
  if (!a.sliding) {
    const double keys = in_tiles(a.keys);
    return {rows, keys, rows * (keys + step) / 2};
  }
  const double all = in_tiles(rows_of_sequence(a));
  const double band = std::min(all, a.keys / kTile + rates.window_tiles);
  const double of_sequence = band * (band + step) / 2 + (all - band) * band;
  return {rows, band, of_sequence * (rows / all)};
}

// Traffic of once reading Q and writing O; below, of once reading K and V.
Bytes query_bytes(const AttentionShape& a, double element) {
  return Bytes(2 * element * a.batch * a.queries * a.heads * mean_head_dim(a));
}
// Zig-zag dealing gives a rank two runs of rows; each also reads the window before it.
Bytes kv_bytes(const AttentionShape& a, double element) {
  const double keys = a.sliding ? std::min(rows_of_sequence(a), a.queries + 2 * a.keys) : a.keys;
  return Bytes(2 * element * a.batch * keys * a.kv_heads * mean_head_dim(a));
}

// Time without traffic: overhead, tiles of scores, query tiles. `speed`: of this kernel over the
// measured one.
Seconds busy_time(const Device& device, const AttentionRates& rates, const AttentionShape& a,
                  double speed) {
  const double sms = device.multiprocessors;
  const double head_dim = mean_head_dim(a);
  const double heads = a.batch * a.heads;
  const ScoreTiles tiles = score_tiles(rates, a);
  const double tile = 4 * kTile * kTile * head_dim / (rates.per_multiprocessor.value() * speed);
  const double balanced = heads * tiles.of_head / sms + rates.tail * tiles.longest_row;
  const double queries = rates.query_tile.value() * head_dim / kTile * heads * tiles.rows / sms;
  return rates.overhead + Seconds(tile * std::max(balanced, tiles.longest_row) + queries);
}

// The share of traffic that misses the last-level cache.
double missing_share(Bytes cache, Bytes footprint) {
  if (cache.value() <= 0) return 1;
  return 1 / (1 + std::pow(cache / footprint, kCacheSlope));
}

// Time of the kernel in training. `speed`: over the measured kernel.
struct InTraining {
  const Device& device;
  Dtype dtype;
  double speed;

  Seconds operator()(const AttentionRates& rates, const AttentionShape& a) const {
    const double element = bytes_per_element(dtype);
    const Seconds traffic =
        (query_bytes(a, element) + kv_bytes(a, element)) / device.memory_bandwidth;
    const double faster = speed * device.rate_over_measured(dtype) * device.rates.sustained_clock;
    return correction(rates, a) * (busy_time(device, rates, a, faster) + traffic);
  }
};

// Time of the kernel as it was measured.
struct AsMeasured {
  const Device& device;

  Seconds operator()(const AttentionRates& rates, const AttentionShape& a) const {
    const Bytes query = query_bytes(a, kMeasuredElement);
    const Bytes kv = kv_bytes(a, kMeasuredElement);
    const double missing = missing_share(rates.cache, query + kv);
    const double slow = rates.cached_share + (1 - rates.cached_share) * missing;
    const Seconds traffic =
        (rates.query_traffic * query + rates.kv_traffic * kv) * slow / device.memory_bandwidth;
    return correction(rates, a) * (busy_time(device, rates, a, 1) + traffic);
  }
};

using RatesTable = std::span<const AttentionRates>;

// The entries of the kernel without a window, which come first, and of that with one. A table with
// windowed entries only counts as both.
RatesTable plain_of(const Device& device) {
  const RatesTable all = device.rates.attention;
  assert(!all.empty());
  const auto windowed = std::ranges::find(all, true, &AttentionRates::sliding);
  return windowed == all.begin() ? all : RatesTable(all.begin(), windowed);
}
RatesTable windowed_of(const Device& device) {
  const RatesTable all = device.rates.attention;
  return {std::ranges::find(all, true, &AttentionRates::sliding), all.end()};
}

AttentionShape of_head_dim(AttentionShape a, double head_dim) {
  a.query_head_dim = a.value_head_dim = head_dim;
  return a;
}
AttentionShape of_window(AttentionShape a, double keys) {
  a.keys = keys;
  return a;
}

// Interpolates `figure_of` linearly between the two nearest head dimensions of the table. Below the
// first and above the last one, it is the figure by that entry's rates.
template <typename FigureOf>
auto between_head_dims(RatesTable table, const AttentionShape& a, const FigureOf& figure_of) {
  const double head_dim = mean_head_dim(a);
  const auto above = std::ranges::find_if(
      table, [&](const AttentionRates& entry) { return head_dim <= entry.head_dim; });
  if (above == table.begin()) return figure_of(*above, a);
  const AttentionRates& below = *(above - 1);
  if (above == table.end()) return figure_of(below, a);
  if (above->head_dim == head_dim) return figure_of(*above, a);
  const double share = (head_dim - below.head_dim) / (above->head_dim - below.head_dim);
  return (1 - share) * figure_of(below, of_head_dim(a, below.head_dim)) +
         share * figure_of(*above, of_head_dim(a, above->head_dim));
}

template <typename TimeOf>
Seconds plain_time(const Device& device, const AttentionShape& a, const TimeOf& time_of) {
  return between_head_dims(plain_of(device), a, time_of);
}

AttentionShape without_window(AttentionShape a) {
  a.keys = rows_of_sequence(a);
  a.sliding = false;
  return a;
}

// Time by an entry of the kernel with a window. A window wider than was measured: the ends of a
// window cost as in the widest measured one, further keys as in the kernel without a window. So it
// takes the time of the measured window plus that of its further keys in the plain kernel, if that
// is faster than the entry's own form, and never more than the plain kernel over all keys.
template <typename TimeOf>
Seconds entry_time(const Device& device, const AttentionRates& entry, const AttentionShape& a,
                   const TimeOf& time_of) {
  const Seconds own = time_of(entry, a);
  if (entry.window == 0 || a.keys <= entry.window) return own;
  const AttentionShape measured = of_window(a, entry.window);
  const Seconds further = plain_time(device, a, time_of) - plain_time(device, measured, time_of);
  return std::min(
      {own, time_of(entry, measured) + further, plain_time(device, without_window(a), time_of)});
}

// Time of the kernel with a window: its ratio to the kernel without one over as many keys is what
// is interpolated between head dimensions. A ratio below 1 means that the plain kernel of that head
// dimension is slow, so for other head dimensions it counts as 1.
template <typename TimeOf>
Seconds windowed_time(const Device& device, const AttentionShape& a, const TimeOf& time_of) {
  const double head_dim = mean_head_dim(a);
  const auto over_plain = [&](const AttentionRates& entry, const AttentionShape& shape) {
    const double times =
        entry_time(device, entry, shape, time_of) / plain_time(device, shape, time_of);
    return entry.head_dim == head_dim ? times : std::max(1.0, times);
  };
  return plain_time(device, a, time_of) * between_head_dims(windowed_of(device), a, over_plain);
}

// Whether rates with a window apply. Heads wider than any measured with a window use those without,
// if there are any of wider heads.
bool has_windowed(const Device& device, const AttentionShape& a) {
  const RatesTable windowed = windowed_of(device);
  if (windowed.empty()) return false;
  const int widest = windowed.back().head_dim;
  return mean_head_dim(a) <= widest || plain_of(device).back().head_dim <= widest;
}

template <typename TimeOf>
Seconds forward_time(const Device& device, const AttentionShape& a, const TimeOf& time_of) {
  return a.sliding && has_windowed(device, a) ? windowed_time(device, a, time_of)
                                              : plain_time(device, a, time_of);
}

}  // namespace

std::array<double, 3> attention_coordinates(const AttentionShape& a) {
  const double keys = a.sliding ? rows_of_sequence(a) : a.keys;
  return {std::log2(a.queries * keys) / 2, std::log2(a.batch * a.heads),
          std::log2(a.heads / a.kv_heads)};
}

Seconds attention_time(const Device& device, Dtype dtype, const AttentionShape& shape,
                       double speed) {
  const AttentionShape a = of_window(shape, shape.keys / shape.blocks);  // of one kernel
  const InTraining time_of{device, dtype, speed};
  const Seconds time = forward_time(device, a, time_of);
  if (!a.sliding) return shape.blocks * time;
  return shape.blocks * std::min(time, plain_time(device, without_window(a), time_of));
}

Seconds attention_prefill_time(const Device& device, const AttentionShape& shape) {
  return forward_time(device, shape, AsMeasured{device});
}

}  // namespace trainyard
