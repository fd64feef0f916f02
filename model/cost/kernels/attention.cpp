#include "model/cost/kernels/attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace trainyard {
namespace {

constexpr double kAttentionTile = 128;

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

}  // namespace

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

}  // namespace trainyard
