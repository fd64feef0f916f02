#include "model/cost/kernels/attention.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <span>

namespace trainyard {
namespace {

constexpr double kTile = 128;           // of scores: queries and keys
constexpr double kCacheSlope = 4;       // how sharply traffic outgrows the last-level cache
constexpr double kMeasuredElement = 2;  // bytes

double mean_head_dim(const AttentionShape& a) { return (a.query_head_dim + a.value_head_dim) / 2; }

double correction(const AttentionRates& rates, const AttentionShape& a) {
  if (rates.residual.empty()) return 1;
  return std::exp(residual_at(rates.residual, attention_coordinates(a)));
}

struct ScoreTiles {
  double rows;         // of a head, in tiles of 128
  double longest_row;  // key tiles of the row that sees most
  double of_head;      // of all rows together
};

double rows_of_sequence(const AttentionShape& a) { return a.context_ranks * a.queries; }

// Causal masking leaves a triangle; a window of it a band with a triangular start. Under context
// parallelism a rank's rows see, dealt zig-zag, their share of the whole.
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

// Reading or writing each of Q and O, and of K and V, once.
Bytes query_bytes(const AttentionShape& a, double element) {
  return Bytes(2 * element * a.batch * a.queries * a.heads * mean_head_dim(a));
}
// Zig-zag dealing gives a rank two runs of rows, each with a window before it.
Bytes kv_bytes(const AttentionShape& a, double element) {
  const double keys = a.sliding ? std::min(rows_of_sequence(a), a.queries + 2 * a.keys) : a.keys;
  return Bytes(2 * element * a.batch * keys * a.kv_heads * mean_head_dim(a));
}

// Overhead, tiles and query tiles: everything but traffic. `speed`: over the measured kernel's.
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

// Of the kernel in training. `speed`: over the measured one's.
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

// Of the kernel as it was measured.
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

// The kernel without a window, and that with one. Entries without come first.
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

// Between what `figure_of` gives at the two nearest head dimensions; beyond them all that of the
// last entry's rates.
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

// Of an entry of the kernel with a window. What the ends of a window cost, a narrow one shows; what
// keys between them cost, the kernel without a window does. So a window wider than was measured
// takes what the measured one does and its further keys at the plain kernel's rate, if that is
// faster; and never longer than that kernel over all keys.
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

// As many times what the kernel without a window would take of the same keys as between the
// entries. Where one of those is faster with a window, the plain kernel of its head dimension is
// slow, which says nothing of another.
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

// Heads wider than any that was measured with a window are as if none had been.
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
