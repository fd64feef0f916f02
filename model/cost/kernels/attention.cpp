#include "model/cost/kernels/attention.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace trainyard {
namespace {

constexpr double kTile = 128;           // of scores: queries and keys
constexpr double kCacheSlope = 4;       // how sharply traffic outgrows the last-level cache
constexpr double kMeasuredElement = 2;  // bytes

double mean_head_dim(const AttentionShape& a) { return (a.query_head_dim + a.value_head_dim) / 2; }

// The parameters at one head dimension, and the factor of the residual there.
struct Form {
  FlopsPerSecond per_multiprocessor;
  Seconds overhead;
  double tail;
  Seconds query_tile;
  double window_tiles;
  double row_tile;
  double query_traffic, kv_traffic;
  Bytes cache;
  double cached_share;
  double correction;
};

double correction(const AttentionRates& rates, const AttentionShape& a) {
  if (rates.residual.empty()) return 1;
  return std::exp(residual_at(rates.residual, attention_coordinates(a)));
}

Form at_entry(const AttentionRates& r, const AttentionShape& a) {
  return {r.per_multiprocessor, r.overhead,      r.tail,
          r.query_tile,         r.window_tiles,  static_cast<double>(r.row_tile),
          r.query_traffic,      r.kv_traffic,    r.cache,
          r.cached_share,       correction(r, a)};
}

Form mixed(const Form& a, const Form& b, double share) {
  const auto between = [share](auto x, auto y) { return x + (y - x) * share; };
  return {between(a.per_multiprocessor, b.per_multiprocessor),
          between(a.overhead, b.overhead),
          between(a.tail, b.tail),
          between(a.query_tile, b.query_tile),
          between(a.window_tiles, b.window_tiles),
          share < 0.5 ? a.row_tile : b.row_tile,
          between(a.query_traffic, b.query_traffic),
          between(a.kv_traffic, b.kv_traffic),
          between(a.cache, b.cache),
          between(a.cached_share, b.cached_share),
          between(a.correction, b.correction)};
}

// Interpolated between the head dimensions of the kernel with a window, or of that without: where
// nothing else is known, and for heads wider than any that was measured with a window.
Form form_of(const Device& device, const AttentionShape& a) {
  const auto& table = device.rates.attention;
  assert(!table.empty());
  const double head_dim = mean_head_dim(a);
  const auto windowed = std::ranges::find(table, true, &AttentionRates::sliding);
  const bool all_windowed = windowed == table.begin();
  const bool plain_is_wider = !all_windowed && windowed != table.end() &&
                              head_dim > table.back().head_dim &&
                              (windowed - 1)->head_dim > table.back().head_dim;
  const bool of_window = a.sliding && windowed != table.end() && !plain_is_wider;
  const auto first = of_window ? windowed : table.begin();
  const auto last = of_window || all_windowed ? table.end() : windowed;
  const auto above = std::find_if(
      first, last, [&](const AttentionRates& entry) { return head_dim <= entry.head_dim; });
  if (above == first) return at_entry(*first, a);
  const AttentionRates& below = *(above - 1);
  if (above == last) return at_entry(below, a);
  const double share = (head_dim - below.head_dim) / (above->head_dim - below.head_dim);
  return share == 1 ? at_entry(*above, a) : mixed(at_entry(below, a), at_entry(*above, a), share);
}

struct ScoreTiles {
  double rows;         // of a head, in tiles of 128
  double longest_row;  // key tiles of the row that sees most
  double of_head;      // of all rows together
};

// Causal masking leaves a triangle; a window of it a band with a triangular start. Under context
// parallelism a rank's rows see, dealt zig-zag, their share of the whole triangle.
ScoreTiles score_tiles(const Form& rates, const AttentionShape& a) {
  const double step = rates.row_tile / kTile;
  const double rows = std::ceil(a.queries / rates.row_tile) * step;
  if (!a.sliding) {
    const double keys = std::ceil(a.keys / rates.row_tile) * step;
    return {rows, keys, rows * (keys + step) / 2};
  }
  const double band = std::min(rows, a.keys / kTile + rates.window_tiles);
  return {rows, band, band * (band + step) / 2 + (rows - band) * band};
}

// Reading or writing each of Q and O, and of K and V, once.
Bytes query_bytes(const AttentionShape& a, double element) {
  return Bytes(2 * element * a.batch * a.queries * a.heads * mean_head_dim(a));
}
Bytes kv_bytes(const AttentionShape& a, double element) {
  const double keys = a.sliding ? a.queries : a.keys;
  return Bytes(2 * element * a.batch * keys * a.kv_heads * mean_head_dim(a));
}

// Overhead, tiles and query tiles: everything but traffic. `speed`: over the measured kernel's.
Seconds busy_time(const Device& device, const Form& rates, const AttentionShape& a, double speed) {
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

// Of one kernel in training.
Seconds kernel_time(const Device& device, Dtype dtype, const AttentionShape& a, double speed) {
  const Form form = form_of(device, a);
  const double element = bytes_per_element(dtype);
  const Seconds traffic =
      (query_bytes(a, element) + kv_bytes(a, element)) / device.memory_bandwidth;
  const double faster = speed * device.rate_over_measured(dtype) * device.rates.sustained_clock;
  return form.correction * (busy_time(device, form, a, faster) + traffic);
}

}  // namespace

std::array<double, 3> attention_coordinates(const AttentionShape& a) {
  const double keys = a.sliding ? a.queries : a.keys;
  return {std::log2(a.queries * keys) / 2, std::log2(a.batch * a.heads),
          std::log2(a.heads / a.kv_heads)};
}

Seconds attention_time(const Device& device, Dtype dtype, const AttentionShape& shape,
                       double speed) {
  AttentionShape a = shape;  // of one kernel
  a.keys /= shape.blocks;
  const Seconds time = kernel_time(device, dtype, a, speed);
  if (!a.sliding) return shape.blocks * time;
  AttentionShape plain = a;
  plain.sliding = false;
  plain.keys = a.queries;
  return shape.blocks * std::min(time, kernel_time(device, dtype, plain, speed));
}

Seconds attention_prefill_time(const Device& device, const AttentionShape& a) {
  const Form form = form_of(device, a);
  const Bytes query = query_bytes(a, kMeasuredElement);
  const Bytes kv = kv_bytes(a, kMeasuredElement);
  const double missing = missing_share(form.cache, query + kv);
  const double slow = form.cached_share + (1 - form.cached_share) * missing;
  const Seconds traffic =
      (form.query_traffic * query + form.kv_traffic * kv) * slow / device.memory_bandwidth;
  return (busy_time(device, form, a, 1) + traffic) * form.correction;
}

}  // namespace trainyard
