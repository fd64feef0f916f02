// Attention by tensor cores (Dao 2023): tiles of 64 queries and 64 keys in bf16 or fp16, with sums
// in float registers. A block has four warps; each keeps the sums of 16 rows of the tile: queries
// in the forward pass and for the queries' gradient, keys for the keys' gradient. The PTX ISA says
// under mma.m16n8k16 which elements each lane holds: lane l has rows l / 4 and l / 4 + 8, and two
// of every eight columns.
#include <type_traits>

#include "executor/cuda/kernels/places.h"

namespace trainyard {
namespace {

constexpr int kTile = 64;
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kNowhere = 0x7fffffff;  // position of a row beyond the last
constexpr float kLog2E = 1.4426950408889634F;
constexpr float kLn2 = 0.6931471805599453F;

// Rows in shared memory are 16 bytes longer than a head, so that lanes meet different banks.
template <int D>
constexpr int kRow = D + 8;
template <int D>
constexpr int kTileSize = kTile* kRow<D>;

using Scores = float[8][4];  // 16 rows × 64 columns of a warp
template <int D>
using Sums = float[D / 8][4];  // 16 rows × D

__device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
__device__ int warp_row() { return static_cast<int>(threadIdx.x) / 32 * 16; }
// Row and column of element i of block n of a lane's scores or sums.
__device__ int row_at(int i) { return warp_row() + lane() / 4 + i / 2 * 8; }
__device__ int column_at(int n, int i) { return n * 8 + lane() % 4 * 2 + i % 2; }

__device__ unsigned bits_of(__nv_bfloat16 number) { return __bfloat16_as_ushort(number); }
__device__ unsigned bits_of(__half number) { return __half_as_ushort(number); }

template <typename Number>
__device__ unsigned packed(float a, float b) {
  Number low, high;
  set_number(low, a);
  set_number(high, b);
  return bits_of(low) | bits_of(high) << 16;
}

// scores = the warp's rows of `a` · (all rows of `b`)ᵀ
template <int D, typename Number>
__device__ void multiply_rows(Scores& scores, const Number* a, const Number* b) {
  const int l = lane();
#pragma unroll
  for (int n = 0; n < 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[n][i] = 0;
  }
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    unsigned of_a[4];
    load_matrices(of_a, a + (warp_row() + l % 16) * kRow<D> + k + l / 16 * 8);
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
      unsigned of_b[4];
      load_matrices(of_b, b + (n * 8 + l / 16 * 8 + l % 8) * kRow<D> + k + l / 8 % 2 * 8);
      multiply_add<Number>(scores[n], of_a, of_b[0], of_b[1]);
      multiply_add<Number>(scores[n + 1], of_a, of_b[2], of_b[3]);
    }
  }
}

// sums += weights · rows of `b`
template <int D, typename Number>
__device__ void add_weighted(Sums<D>& sums, const Scores& weights, const Number* b) {
  const int l = lane();
#pragma unroll
  for (int k = 0; k < kTile / 16; ++k) {
    const unsigned of_a[4] = {packed<Number>(weights[2 * k][0], weights[2 * k][1]),
                              packed<Number>(weights[2 * k][2], weights[2 * k][3]),
                              packed<Number>(weights[2 * k + 1][0], weights[2 * k + 1][1]),
                              packed<Number>(weights[2 * k + 1][2], weights[2 * k + 1][3])};
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      unsigned of_b[4];
      load_transposed(of_b, b + (k * 16 + l / 8 % 2 * 8 + l % 8) * kRow<D> + n * 8 + l / 16 * 8);
      multiply_add<Number>(sums[n], of_a, of_b[0], of_b[1]);
      multiply_add<Number>(sums[n + 1], of_a, of_b[2], of_b[3]);
    }
  }
}

// ---- Tiles --------------------------------------------------------------------------------------

struct TileOf {
  TokenOrder order;
  int sequence = 0;
  std::int64_t first = 0;
};

// The least and the largest position in a tile; anything (0 … kNowhere) where a tile spans two
// parts.
struct Span {
  std::int64_t least, most;
};
__device__ Span span_of(const TileOf& tile) {
  const std::int64_t count = count_of(tile.order);
  const std::int64_t last = tile.first + kTile < count ? tile.first + kTile - 1 : count - 1;
  if (tile.first / tile.order.part != last / tile.order.part) return {0, kNowhere};
  return {position_of(tile.order, tile.first), position_of(tile.order, last)};
}

__device__ bool any_seen(const AttentionPlan& plan, const Span& queries, const Span& keys) {
  return keys.least <= queries.most &&
         (plan.window == 0 || queries.least - keys.most < plan.window);
}
__device__ bool all_seen(const AttentionPlan& plan, const Span& queries, const Span& keys) {
  return keys.most <= queries.least &&
         (plan.window == 0 || queries.most - keys.least < plan.window);
}

// Brings the positions of a tile's rows; `beyond` for rows beyond the last.
__device__ void bring_positions(int* to, const TileOf& tile, int beyond) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kThreads) {
    const std::int64_t n = tile.first + i;
    to[i] = n < count_of(tile.order) ? static_cast<int>(position_of(tile.order, n)) : beyond;
  }
}

// Brings a head's columns of a tile's rows, 16 bytes at a time.
template <int D, typename Number>
__device__ void bring_rows(Number* to, const View& from, const TileOf& tile, int head) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * (D / 8); i += kThreads) {
    const std::int64_t n = tile.first + i / (D / 8);
    const int column = i % (D / 8) * 8;
    uint4 eight = make_uint4(0, 0, 0, 0);
    if (n < count_of(tile.order)) {
      const std::int64_t row = row_of(tile.order, tile.sequence, n);
      eight = *reinterpret_cast<const uint4*>(static_cast<const Number*>(from.data) +
                                              row * from.columns + head * D + column);
    }
    *reinterpret_cast<uint4*>(to + i / (D / 8) * kRow<D> + column) = eight;
  }
}

// Brings one number for each of a tile's rows.
__device__ void bring_numbers(float* to, const View& from, const TileOf& tile, int column) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kThreads) {
    const std::int64_t n = tile.first + i;
    to[i] = n < count_of(tile.order)
                ? at(from, row_of(tile.order, tile.sequence, n) * from.columns + column)
                : 0;
  }
}

// Two adjacent elements of a view that holds floats or `Number` (is_plain).
template <typename Number>
__device__ Pack<2> pair_at(const View& view, std::int64_t i) {
  Pack<2> pair;
  if (view.type == ElementType::f32) {
    take_part(view, i, Raw{}, pair.x);
  } else {
    halves<Number>(view, i, Raw{}, pair);
  }
  return pair;
}
template <typename Number>
__device__ void put_pair(const View& view, std::int64_t i, const Pack<2>& pair) {
  if (view.type == ElementType::f32) {
    put_part(view, i, pair.x);
  } else {
    store_halves<Number>(view, i, pair);
  }
}

// Place of the first column that a lane has in a row.
template <int D>
__device__ std::int64_t place_of(const View& in, const TileOf& tile, int head, std::int64_t row) {
  return row_of(tile.order, tile.sequence, row) * in.columns + head * D + column_at(0, 0);
}

template <int D, typename Number>
__device__ void write_sums(const Sums<D>& sums, const View& to, const TileOf& tile, int head,
                           bool adds) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const std::int64_t row = tile.first + row_at(2 * r);
    if (row >= count_of(tile.order)) continue;
    const std::int64_t place = place_of<D>(to, tile, head, row);
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      Pack<2> pair{{sums[n][2 * r], sums[n][2 * r + 1]}};
      if (adds) {
        const Pack<2> before = pair_at<Number>(to, place + n * 8);
        pair.x[0] += before.x[0];
        pair.x[1] += before.x[1];
      }
      put_pair<Number>(to, place + n * 8, pair);
    }
  }
}

__device__ bool is_seen(const AttentionPlan& plan, int query, int key) {
  return key <= query && (plan.window == 0 || query - key < plan.window);
}

__device__ float over_four(float mine, bool largest) {
  for (int away = 1; away < 4; away *= 2) {
    const float other = __shfl_xor_sync(~0u, mine, away);
    mine = largest ? fmaxf(mine, other) : mine + other;
  }
  return mine;
}

// ---- Forward ------------------------------------------------------------------------------------

// Largest score (in powers of two) and sum of a lane's two rows.
struct RunningRows {
  float largest[2], sum[2];
};

template <int D, typename Number>
__device__ void begin_rows(const AttentionPlan& plan, const AttentionOperands& of,
                           const TileOf& tile, int head, bool has_sinks, const View& sinks,
                           RunningRows& run, Sums<D>& sums) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const std::int64_t n = tile.first + row_at(2 * r);
    const bool there = n < count_of(tile.order);
    run.largest[r] = -INFINITY;
    run.sum[r] = 0;
    const std::int64_t row = there ? n : 0;
    const std::int64_t place = place_of<D>(of.output, tile, head, row);
#pragma unroll
    for (int k = 0; k < D / 8; ++k) {
      Pack<2> pair{};
      if (there && !of.first) pair = pair_at<Number>(of.output, place + k * 8);
      sums[k][2 * r] = pair.x[0];
      sums[k][2 * r + 1] = pair.x[1];
    }
    if (!there || (of.first && !has_sinks)) continue;
    const float before =
        of.first ? at(sinks, plan.first_head + head)
                 : at(of.statistics,
                      row_of(tile.order, tile.sequence, row) * of.statistics.columns + head);
    run.largest[r] = before * kLog2E;
    run.sum[r] = lane() % 4 == 0 ? 1 : 0;
  }
}

// Turns scores into weights relative to the largest score so far, and shrinks the earlier sums.
template <int D>
__device__ void take_in(Scores& scores, RunningRows& run, Sums<D>& sums) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = run.largest[r];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      largest = fmaxf(largest, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    largest = over_four(largest, true);
    const float from = largest == -INFINITY ? 0 : largest;
    const float shrink = exp2f(run.largest[r] - from);
    run.largest[r] = largest;
    run.sum[r] *= shrink;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[n][i] = exp2f(scores[n][i] - from);
        run.sum[r] += scores[n][i];
      }
    }
#pragma unroll
    for (int k = 0; k < D / 8; ++k) {
      sums[k][2 * r] *= shrink;
      sums[k][2 * r + 1] *= shrink;
    }
  }
}

template <int D, typename Number>
__device__ void end_rows(const AttentionOperands& of, const TileOf& tile, int head,
                         RunningRows& run, Sums<D>& sums) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = over_four(run.sum[r], false);
    const float share = sum > 0 ? 1 / sum : 0;
#pragma unroll
    for (int k = 0; k < D / 8; ++k) {
      sums[k][2 * r] *= share;
      sums[k][2 * r + 1] *= share;
    }
    const std::int64_t n = tile.first + row_at(2 * r);
    if (n >= count_of(tile.order) || lane() % 4 != 0) continue;
    put(of.statistics, row_of(tile.order, tile.sequence, n) * of.statistics.columns + head,
        (run.largest[r] + log2f(sum)) * kLn2);
  }
  write_sums<D, Number>(sums, of.output, tile, head, false);
}

// Scales scores to powers of two, and sets to −∞ what a query does not see.
__device__ void hide_unseen(const AttentionPlan& plan, Scores& scores, const int* query_positions,
                            const int* key_positions, bool hides) {
  const float scale = rsqrtf(static_cast<float>(plan.query_width)) * kLog2E;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores[n][i] *= scale;
      if (hides && !is_seen(plan, query_positions[row_at(i)], key_positions[column_at(n, i)])) {
        scores[n][i] = -INFINITY;
      }
    }
  }
}

template <int D, typename Number>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(AttentionPlan plan, AttentionOperands of, bool has_sinks, View sinks) {
  auto* q = reinterpret_cast<Number*>(shared_memory());
  Number* k = q + kTileSize<D>;
  Number* v = k + kTileSize<D>;
  __shared__ int query_positions[kTile], key_positions[kTile];
  const int head = static_cast<int>(blockIdx.y), kv_head = head / (plan.heads / plan.kv_heads);
  const int sequence = static_cast<int>(blockIdx.z);
  // Tiles with the most keys come first.
  const std::int64_t tile = static_cast<std::int64_t>(gridDim.x - 1 - blockIdx.x);
  const TileOf queries{plan.queries, sequence, tile * kTile};
  const Span query_span = span_of(queries);
  bring_positions(query_positions, queries, -1);
  bring_rows<D>(q, of.queries, queries, head);
  RunningRows run;
  Sums<D> sums;
  begin_rows<D, Number>(plan, of, queries, head, has_sinks, sinks, run, sums);
  for (std::int64_t first = 0; first < count_of(plan.keys); first += kTile) {
    const TileOf keys{plan.keys, sequence, first};
    const Span key_span = span_of(keys);
    if (!any_seen(plan, query_span, key_span)) continue;
    __syncthreads();
    bring_positions(key_positions, keys, kNowhere);
    bring_rows<D>(k, of.keys, keys, kv_head);
    bring_rows<D>(v, of.values, keys, kv_head);
    __syncthreads();
    Scores scores;
    multiply_rows<D>(scores, q, k);
    const bool whole = first + kTile <= count_of(plan.keys);
    hide_unseen(plan, scores, query_positions, key_positions,
                !whole || !all_seen(plan, query_span, key_span));
    take_in<D>(scores, run, sums);
    add_weighted<D>(sums, scores, v);
  }
  end_rows<D, Number>(of, queries, head, run, sums);
}

// ---- Backward -----------------------------------------------------------------------------------

// The tiles of one step of the backward passes.
template <typename Number>
struct Tiles {
  Number *q, *k, *v, *gradient;
};
template <int D, typename Number>
__device__ Tiles<Number> tiles_in_shared() {
  auto* q = reinterpret_cast<Number*>(shared_memory());
  return {q, q + kTileSize<D>, q + 2 * kTileSize<D>, q + 3 * kTileSize<D>};
}

template <int D, typename Number>
__global__ void __launch_bounds__(kThreads)
    query_gradient_kernel(AttentionPlan plan, AttentionOperands of, View delta, View gradient,
                          View to, bool adds) {
  const Tiles<Number> t = tiles_in_shared<D, Number>();
  __shared__ int query_positions[kTile], key_positions[kTile];
  __shared__ float log_sums[kTile], deltas[kTile];
  const int head = static_cast<int>(blockIdx.y), kv_head = head / (plan.heads / plan.kv_heads);
  const int sequence = static_cast<int>(blockIdx.z);
  const TileOf queries{plan.queries, sequence,
                       static_cast<std::int64_t>(gridDim.x - 1 - blockIdx.x) * kTile};
  const Span query_span = span_of(queries);
  bring_positions(query_positions, queries, -1);
  bring_rows<D>(t.q, of.queries, queries, head);
  bring_rows<D>(t.gradient, gradient, queries, head);
  bring_numbers(log_sums, of.statistics, queries, head);
  bring_numbers(deltas, delta, queries, head);
  const float scale = rsqrtf(static_cast<float>(D));
  Sums<D> sums{};
  for (std::int64_t first = 0; first < count_of(plan.keys); first += kTile) {
    const TileOf keys{plan.keys, sequence, first};
    if (!any_seen(plan, query_span, span_of(keys))) continue;
    __syncthreads();
    bring_positions(key_positions, keys, kNowhere);
    bring_rows<D>(t.k, of.keys, keys, kv_head);
    bring_rows<D>(t.v, of.values, keys, kv_head);
    __syncthreads();
    Scores p, dp;
    multiply_rows<D>(p, t.q, t.k);
    multiply_rows<D>(dp, t.gradient, t.v);
    hide_unseen(plan, p, query_positions, key_positions, true);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = row_at(i);
        p[n][i] = exp2f(p[n][i] - log_sums[row] * kLog2E) * (dp[n][i] - deltas[row]) * scale;
      }
    }
    add_weighted<D>(sums, p, t.k);
  }
  write_sums<D, Number>(sums, to, queries, head, adds);
}

// Rows are keys here, columns queries.
template <int D, typename Number>
__global__ void __launch_bounds__(kThreads)
    key_gradient_kernel(AttentionPlan plan, AttentionOperands of, View delta,
                        AttentionGradients to) {
  const Tiles<Number> t = tiles_in_shared<D, Number>();
  __shared__ int query_positions[kTile], key_positions[kTile];
  __shared__ float log_sums[kTile], deltas[kTile];
  const int kv_head = static_cast<int>(blockIdx.y), sequence = static_cast<int>(blockIdx.z);
  const int shared = plan.heads / plan.kv_heads;
  const TileOf keys{plan.keys, sequence, static_cast<std::int64_t>(blockIdx.x) * kTile};
  const Span key_span = span_of(keys);
  bring_positions(key_positions, keys, kNowhere);
  bring_rows<D>(t.k, of.keys, keys, kv_head);
  bring_rows<D>(t.v, of.values, keys, kv_head);
  const float scale = rsqrtf(static_cast<float>(D));
  Sums<D> key_sums{}, value_sums{};
  const std::int64_t tiles = (count_of(plan.queries) + kTile - 1) / kTile;
  for (std::int64_t n = 0; n < shared * tiles; ++n) {
    const int head = kv_head * shared + static_cast<int>(n / tiles);
    const TileOf queries{plan.queries, sequence, n % tiles * kTile};
    if (!any_seen(plan, span_of(queries), key_span)) continue;
    __syncthreads();
    bring_positions(query_positions, queries, -1);
    bring_rows<D>(t.q, of.queries, queries, head);
    bring_rows<D>(t.gradient, to.output_gradient, queries, head);
    bring_numbers(log_sums, of.statistics, queries, head);
    bring_numbers(deltas, delta, queries, head);
    __syncthreads();
    Scores p, ds;
    multiply_rows<D>(p, t.k, t.q);
    multiply_rows<D>(ds, t.v, t.gradient);
#pragma unroll
    for (int b = 0; b < 8; ++b) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int query = column_at(b, i);
        const bool seen = is_seen(plan, query_positions[query], key_positions[row_at(i)]);
        p[b][i] = seen ? exp2f((p[b][i] * scale - log_sums[query]) * kLog2E) : 0;
        ds[b][i] = p[b][i] * (ds[b][i] - deltas[query]) * scale;
      }
    }
    add_weighted<D>(value_sums, p, t.gradient);
    add_weighted<D>(key_sums, ds, t.q);
  }
  write_sums<D, Number>(key_sums, to.keys, keys, kv_head, to.add_keys);
  write_sums<D, Number>(value_sums, to.values, keys, kv_head, to.add_keys);
}

// ---- Which of them ------------------------------------------------------------------------------

// Whether sums can be read from the view and written to it.
bool is_plain(const View& view, ElementType type) {
  return view.type == ElementType::f32 || view.type == type;
}

bool fits(const AttentionPlan& plan, const AttentionOperands& of) {
  const bool width = plan.query_width == 64 || plan.query_width == 128;
  const ElementType type = of.queries.type;
  return plan.log_sums && of.scores.data == nullptr && width &&
         plan.value_width == plan.query_width &&
         (type == ElementType::bf16 || type == ElementType::f16) && of.keys.type == type &&
         of.values.type == type && is_plain(of.output, type);
}

bool fits(const AttentionGradients& to, ElementType type) {
  return to.output_gradient.type == type && is_plain(to.queries, type) && is_plain(to.keys, type) &&
         is_plain(to.values, type);
}

dim3 blocks_of(const AttentionPlan& plan, const TokenOrder& order, int heads) {
  const std::int64_t count = order.part * order.parts;
  return {static_cast<unsigned>((count + kTile - 1) / kTile), static_cast<unsigned>(heads),
          static_cast<unsigned>(plan.sequences)};
}

constexpr std::size_t kNumberBytes = 2;
static_assert(sizeof(__nv_bfloat16) == kNumberBytes && sizeof(__half) == kNumberBytes);

template <int D>
std::size_t tiles(int count) {
  return static_cast<std::size_t>(count * kTileSize<D>) * kNumberBytes;
}

template <int D, typename Number>
void forward(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of) {
  start(queue, "attention", forward_kernel<D, Number>, blocks_of(plan, plan.queries, plan.heads),
        kThreads, tiles<D>(3), plan, of, of.sinks != nullptr,
        of.sinks == nullptr ? View{} : *of.sinks);
}

template <int D, typename Number>
void backward(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of,
              const AttentionGradients& gradients, const View& delta) {
  start(queue, "query_gradient", query_gradient_kernel<D, Number>,
        blocks_of(plan, plan.queries, plan.heads), kThreads, tiles<D>(4), plan, of, delta,
        gradients.output_gradient, gradients.queries, gradients.add_queries);
  start(queue, "key_gradient", key_gradient_kernel<D, Number>,
        blocks_of(plan, plan.keys, plan.kv_heads), kThreads, tiles<D>(4), plan, of, delta,
        gradients);
}

// Calls run(width, number) with the width of heads as a constant, and a number of the elements'
// type.
template <typename Run>
void with_kind(const AttentionPlan& plan, ElementType type, const Run& run) {
  const auto of_width = [&](auto width) {
    if (type == ElementType::bf16) {
      run(width, __nv_bfloat16{});
    } else {
      run(width, __half{});
    }
  };
  if (plan.query_width == 64) {
    of_width(std::integral_constant<int, 64>{});
  } else {
    of_width(std::integral_constant<int, 128>{});
  }
}

}  // namespace

bool tensor_attention(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of) {
  if (!fits(plan, of)) return false;
  with_kind(plan, of.queries.type,
            [&](auto width, auto number) { forward<width, decltype(number)>(queue, plan, of); });
  return true;
}

bool tensor_attention_gradient(const Queue& queue, const AttentionPlan& plan,
                               const AttentionOperands& of, const AttentionGradients& gradients,
                               const View& delta) {
  if (!fits(plan, of) || !fits(gradients, of.queries.type)) return false;
  with_kind(plan, of.queries.type, [&](auto width, auto number) {
    backward<width, decltype(number)>(queue, plan, of, gradients, delta);
  });
  return true;
}

}  // namespace trainyard
