// Attention over blocks of keys without storing scores (Dao et al. 2022), for any type, width of
// heads and order of tokens, computed in float. The backward pass has two kernels, one for the
// gradients of queries and one for those of keys and values, so that every sum has a fixed order.
#include "executor/cuda/kernels/places.h"
#include "executor/cuda/kernels/rows.h"

namespace trainyard {
namespace {

constexpr int kQueries = 16;  // queries of a tile
constexpr int kKeys = 24;

// Floats that the gradient of the keys keeps in shared memory: tiles of queries, keys, values and
// output gradients, two tiles of scores, and the sums of keys and values.
constexpr std::int64_t key_gradient_floats(std::int64_t query_width, std::int64_t value_width) {
  return (kQueries + 2 * kKeys) * (query_width + value_width) + 2 * kQueries * kKeys;
}
// A block's shared memory on the oldest device that is compiled for (compute capability 8.0).
static_assert(key_gradient_floats(256, 256) * 4 <= 163 * 1024, "heads of 256 fit");

struct Tile {
  int sequence, head, kv_head;
  std::int64_t first, count;  // rows (queries or keys) of this block
};

__device__ Tile query_tile(const AttentionPlan& plan) {
  Tile tile{};
  tile.head = static_cast<int>(blockIdx.y);
  tile.kv_head = tile.head / (plan.heads / plan.kv_heads);
  tile.sequence = static_cast<int>(blockIdx.z);
  tile.first = static_cast<std::int64_t>(blockIdx.x) * kQueries;
  const std::int64_t left = count_of(plan.queries) - tile.first;
  tile.count = left < kQueries ? left : kQueries;
  return tile;
}

// Brings `rows` rows of a head from `first` on into shared memory; zeros beyond the last.
__device__ void bring(float* to, const View& from, const TokenOrder& order, int sequence,
                      std::int64_t column, std::int64_t first, int rows, int width) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * width; i += static_cast<int>(blockDim.x)) {
    const std::int64_t n = first + i / width;
    to[i] = n < count_of(order)
                ? at(from, row_of(order, sequence, n) * from.columns + column + i % width)
                : 0;
  }
}

__device__ bool sees(const AttentionPlan& plan, std::int64_t query, std::int64_t key) {
  if (query >= count_of(plan.queries) || key >= count_of(plan.keys)) return false;
  const std::int64_t back = position_of(plan.queries, query) - position_of(plan.keys, key);
  return back >= 0 && (plan.window == 0 || back < plan.window);
}

__device__ float dropped(const AttentionPlan& plan, const Tile& tile, std::int64_t query,
                         std::int64_t key) {
  if (plan.dropout.rate == 0) return 1;
  const std::int64_t head = plan.first_dropped_head + tile.head;
  const bool keep = is_kept(
      plan.dropout.seed,
      {plan.dropout.site, plan.dropout.layer, plan.dropout.places.first_sequence + tile.sequence,
       position_of(plan.queries, query), head * plan.length + position_of(plan.keys, key)},
      plan.dropout.rate);
  return keep ? plan.dropout.kept : 0;
}

__device__ float product(const float* a, const float* b, int width) {
  float sum = 0;
  for (int i = 0; i < width; ++i) sum += a[i] * b[i];
  return sum;
}

// Scores s [queries × keys] of the tiles in shared memory; −∞ where a query does not see a key.
__device__ void score(float* s, const AttentionPlan& plan, const float* q, const float* k,
                      std::int64_t first_query, std::int64_t first_key) {
  const float scale = rsqrtf(static_cast<float>(plan.query_width));
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * kKeys;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / kKeys, column = i % kKeys;
    s[i] = sees(plan, first_query + row, first_key + column)
               ? scale * product(q + row * plan.query_width, k + column * plan.query_width,
                                 plan.query_width)
               : -INFINITY;
  }
}

struct Running {
  float largest[kQueries], sum[kQueries], shrink[kQueries];
};

// Takes in the scores of one block of keys: updates largest and sum, and the factor by which the
// sums so far shrink.
__device__ void join_scores(Running& run, const float* s) {
  if (threadIdx.x >= kQueries) return;
  const int row = static_cast<int>(threadIdx.x);
  float largest = run.largest[row];
  for (int j = 0; j < kKeys; ++j) largest = fmaxf(largest, s[row * kKeys + j]);
  run.shrink[row] = largest == run.largest[row] ? 1 : expf(run.largest[row] - largest);
  run.sum[row] *= run.shrink[row];
  run.largest[row] = largest;
  if (largest == -INFINITY) return;
  for (int j = 0; j < kKeys; ++j) run.sum[row] += expf(s[row * kKeys + j] - largest);
}

__device__ std::int64_t statistic_at(const AttentionPlan& plan, const AttentionOperands& of,
                                     const Tile& tile, std::int64_t query, std::int64_t key) {
  const std::int64_t row = row_of(plan.queries, tile.sequence, query) * of.statistics.columns;
  return plan.log_sums ? row + tile.head : row + tile.head * count_of(plan.keys) + key;
}
__device__ std::int64_t score_at(const AttentionPlan& plan, const AttentionOperands& of,
                                 const Tile& tile, std::int64_t query, std::int64_t key) {
  return row_of(plan.queries, tile.sequence, query) * of.scores.columns +
         tile.head * count_of(plan.keys) + key;
}

// Starts a block of queries: at zero, at the sink, or where the earlier blocks of keys have left
// it.
__device__ void begin(const AttentionPlan& plan, const AttentionOperands& of, const Tile& tile,
                      bool has_sinks, const View& sinks, Running& run, float* out) {
  const int width = plan.value_width;
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * width;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / width;
    out[i] = of.first || row >= tile.count
                 ? 0
                 : at(of.output,
                      row_of(plan.queries, tile.sequence, tile.first + row) * of.output.columns +
                          tile.head * width + i % width);
  }
  if (threadIdx.x >= kQueries) return;
  const int row = static_cast<int>(threadIdx.x);
  run.largest[row] = -INFINITY;
  run.sum[row] = 0;
  if (row >= tile.count || (of.first && !has_sinks)) return;
  run.largest[row] = of.first
                         ? at(sinks, plan.first_head + tile.head)
                         : at(of.statistics, statistic_at(plan, of, tile, tile.first + row, 0));
  run.sum[row] = 1;
}

// Turns scores s into the weights of the values.
__device__ void weigh(const AttentionPlan& plan, const AttentionOperands& of, const Tile& tile,
                      std::int64_t first_key, const Running& run, float* s) {
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * kKeys;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / kKeys;
    const std::int64_t query = tile.first + row, key = first_key + i % kKeys;
    const bool seen = s[i] > -INFINITY;
    const bool there = row < tile.count && key < count_of(plan.keys);
    float p = seen ? expf(s[i] - run.largest[row]) : 0;
    if (!plan.log_sums && there) {
      p /= run.sum[row];
      put(of.statistics, statistic_at(plan, of, tile, query, key), p);
    } else if (of.scores.data != nullptr && there) {
      put(of.scores, score_at(plan, of, tile, query, key), s[i]);
    }
    s[i] = seen ? p * dropped(plan, tile, query, key) : p;
  }
}

__device__ void add_values(const AttentionPlan& plan, const Running& run, const float* s,
                           const float* v, float* out) {
  const int width = plan.value_width;
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * width;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / width;
    float sum = plan.log_sums ? out[i] * run.shrink[row] : out[i];
    for (int j = 0; j < kKeys; ++j) sum += s[row * kKeys + j] * v[j * width + i % width];
    out[i] = sum;
  }
}

// Passes over the keys once; twice where probabilities are kept, for their sums first.
__global__ void attention_kernel(AttentionPlan plan, AttentionOperands of, bool has_sinks,
                                 View sinks) {
  __shared__ Running run;
  auto* q = reinterpret_cast<float*>(shared_memory());
  float* k = q + kQueries * plan.query_width;
  float* v = k + kKeys * plan.query_width;
  float* s = v + kKeys * plan.value_width;
  float* out = s + kQueries * kKeys;
  const Tile tile = query_tile(plan);
  bring(q, of.queries, plan.queries, tile.sequence, tile.head * plan.query_width, tile.first,
        kQueries, plan.query_width);
  begin(plan, of, tile, has_sinks, sinks, run, out);
  for (int pass = plan.log_sums ? 1 : 0; pass < 2; ++pass) {
    for (std::int64_t first = 0; first < count_of(plan.keys); first += kKeys) {
      __syncthreads();
      bring(k, of.keys, plan.keys, tile.sequence, tile.kv_head * plan.query_width, first, kKeys,
            plan.query_width);
      bring(v, of.values, plan.keys, tile.sequence, tile.kv_head * plan.value_width, first, kKeys,
            plan.value_width);
      __syncthreads();
      score(s, plan, q, k, tile.first, first);
      __syncthreads();
      if (plan.log_sums || pass == 0) join_scores(run, s);
      __syncthreads();
      if (pass == 0) continue;
      weigh(plan, of, tile, first, run, s);
      __syncthreads();
      add_values(plan, run, s, v, out);
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < tile.count * plan.value_width;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / plan.value_width;
    const float whole = plan.log_sums && run.sum[row] > 0 ? run.sum[row] : 1;
    put(of.output,
        row_of(plan.queries, tile.sequence, tile.first + row) * of.output.columns +
            tile.head * plan.value_width + i % plan.value_width,
        out[i] / whole);
  }
  if (plan.log_sums && static_cast<int>(threadIdx.x) < tile.count) {
    const int row = static_cast<int>(threadIdx.x);
    put(of.statistics, statistic_at(plan, of, tile, tile.first + row, 0),
        run.largest[row] + logf(run.sum[row]));
  }
}

// ---- Backward -----------------------------------------------------------------------------------

// delta [rows × heads] = Σ output gradient · output, each by a team of threads.
template <int N>
__global__ void delta_kernel(View delta, View output, View gradient, std::int64_t width, int team) {
  for_rows(delta.size(), team, [&](std::int64_t i) {
    float sum = 0;
    RowShare<N, 0>{i < delta.size() ? width : 0, team}.each([&](int, std::int64_t c) {
      const Pack<N> a = load<N>(output, i * width + c), b = load<N>(gradient, i * width + c);
      for (int k = 0; k < N; ++k) sum += a.x[k] * b.x[k];
    });
    sum = team_sum(sum, team);
    if (threadIdx.x % static_cast<unsigned>(team) == 0 && i < delta.size()) put(delta, i, sum);
  });
}

// Two tiles in shared memory, and what is computed of them: p·kept (for the gradients of values)
// and ds (for those of queries and keys).
struct TilePair {
  const float *q, *k, *v, *gradient;
  float *p, *ds;
};

// A probability, from the statistics that the forward pass has kept.
__device__ float probability(const AttentionPlan& plan, const AttentionOperands& of,
                             const Tile& tile, std::int64_t query, std::int64_t key, float score) {
  const float kept = at(of.statistics, statistic_at(plan, of, tile, query, key));
  if (!plan.log_sums) return kept;
  if (of.scores.data != nullptr) score = at(of.scores, score_at(plan, of, tile, query, key));
  return expf(score - kept);
}

__device__ void differentiate(const AttentionPlan& plan, const AttentionOperands& of,
                              const View& delta, const Tile& queries, std::int64_t first_key,
                              const TilePair& pair) {
  const float scale = rsqrtf(static_cast<float>(plan.query_width));
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * kKeys;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / kKeys, column = i % kKeys;
    const std::int64_t query = queries.first + row, key = first_key + column;
    pair.p[i] = pair.ds[i] = 0;
    if (!sees(plan, query, key)) continue;
    const float p =
        probability(plan, of, queries, query, key,
                    scale * product(pair.q + row * plan.query_width,
                                    pair.k + column * plan.query_width, plan.query_width));
    const float keep = dropped(plan, queries, query, key);
    const float dp = keep * product(pair.gradient + row * plan.value_width,
                                    pair.v + column * plan.value_width, plan.value_width);
    const std::int64_t at_delta =
        row_of(plan.queries, queries.sequence, query) * delta.columns + queries.head;
    pair.p[i] = p * keep;
    pair.ds[i] = p * (dp - at(delta, at_delta)) * scale;
  }
}

__device__ TilePair tiles_in_shared_memory(const AttentionPlan& plan, float** after) {
  auto* q = reinterpret_cast<float*>(shared_memory());
  float* k = q + kQueries * plan.query_width;
  float* v = k + kKeys * plan.query_width;
  float* gradient = v + kKeys * plan.value_width;
  float* p = gradient + kQueries * plan.value_width;
  *after = p + 2 * kQueries * kKeys;
  return {q, k, v, gradient, p, p + kQueries * kKeys};
}

__device__ void write_tile(const View& to, bool adds, const TokenOrder& order, int sequence,
                           std::int64_t first, std::int64_t count, std::int64_t column, int width,
                           const float* sums) {
  for (int i = static_cast<int>(threadIdx.x); i < count * width;
       i += static_cast<int>(blockDim.x)) {
    const std::int64_t place =
        row_of(order, sequence, first + i / width) * to.columns + column + i % width;
    put(to, place, adds ? at(to, place) + sums[i] : sums[i]);
  }
}

__global__ void query_gradient_kernel(AttentionPlan plan, AttentionOperands of, View delta,
                                      View output_gradient, View to, bool adds) {
  float* sums = nullptr;
  const TilePair pair = tiles_in_shared_memory(plan, &sums);
  const Tile tile = query_tile(plan);
  const int width = plan.query_width;
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * width;
       i += static_cast<int>(blockDim.x)) {
    sums[i] = 0;
  }
  bring(const_cast<float*>(pair.q), of.queries, plan.queries, tile.sequence, tile.head * width,
        tile.first, kQueries, width);
  bring(const_cast<float*>(pair.gradient), output_gradient, plan.queries, tile.sequence,
        tile.head * plan.value_width, tile.first, kQueries, plan.value_width);
  for (std::int64_t first = 0; first < count_of(plan.keys); first += kKeys) {
    __syncthreads();
    bring(const_cast<float*>(pair.k), of.keys, plan.keys, tile.sequence, tile.kv_head * width,
          first, kKeys, width);
    bring(const_cast<float*>(pair.v), of.values, plan.keys, tile.sequence,
          tile.kv_head * plan.value_width, first, kKeys, plan.value_width);
    __syncthreads();
    differentiate(plan, of, delta, tile, first, pair);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kQueries * width;
         i += static_cast<int>(blockDim.x)) {
      for (int j = 0; j < kKeys; ++j) {
        sums[i] += pair.ds[i / width * kKeys + j] * pair.k[j * width + i % width];
      }
    }
  }
  __syncthreads();
  write_tile(to, adds, plan.queries, tile.sequence, tile.first, tile.count, tile.head * width,
             width, sums);
}

// A block has some keys of one KV head, and goes over all queries of all heads that share it.
__global__ void key_gradient_kernel(AttentionPlan plan, AttentionOperands of, View delta,
                                    AttentionGradients to) {
  float* sums = nullptr;
  const TilePair pair = tiles_in_shared_memory(plan, &sums);
  const int shared = plan.heads / plan.kv_heads;
  const int width = plan.query_width, values = plan.value_width;
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const std::int64_t first_key = static_cast<std::int64_t>(blockIdx.x) * kKeys;
  const int kv_head = static_cast<int>(blockIdx.y), sequence = static_cast<int>(blockIdx.z);
  float* value_sums = sums + kKeys * width;
  for (int i = thread; i < kKeys * (width + values); i += threads) sums[i] = 0;
  bring(const_cast<float*>(pair.k), of.keys, plan.keys, sequence, kv_head * width, first_key, kKeys,
        width);
  bring(const_cast<float*>(pair.v), of.values, plan.keys, sequence, kv_head * values, first_key,
        kKeys, values);
  const std::int64_t tiles = (count_of(plan.queries) + kQueries - 1) / kQueries;
  for (std::int64_t n = 0; n < shared * tiles; ++n) {
    const int head = kv_head * shared + static_cast<int>(n / tiles);
    const Tile tile{sequence, head, kv_head, n % tiles * kQueries, kQueries};
    __syncthreads();
    bring(const_cast<float*>(pair.q), of.queries, plan.queries, sequence, head * width, tile.first,
          kQueries, width);
    bring(const_cast<float*>(pair.gradient), to.output_gradient, plan.queries, sequence,
          head * values, tile.first, kQueries, values);
    __syncthreads();
    differentiate(plan, of, delta, tile, first_key, pair);
    __syncthreads();
    for (int i = thread; i < kKeys * width; i += threads) {
      for (int row = 0; row < kQueries; ++row) {
        sums[i] += pair.ds[row * kKeys + i / width] * pair.q[row * width + i % width];
      }
    }
    for (int i = thread; i < kKeys * values; i += threads) {
      for (int row = 0; row < kQueries; ++row) {
        value_sums[i] +=
            pair.p[row * kKeys + i / values] * pair.gradient[row * values + i % values];
      }
    }
  }
  __syncthreads();
  const std::int64_t left = count_of(plan.keys) - first_key;
  const std::int64_t count = left < kKeys ? left : kKeys;
  write_tile(to.keys, to.add_keys, plan.keys, sequence, first_key, count, kv_head * width, width,
             sums);
  write_tile(to.values, to.add_keys, plan.keys, sequence, first_key, count, kv_head * values,
             values, value_sums);
}

// The sink's gradient, from its share of each query's attention, which is what the keys leave. A
// block for each head.
__global__ void sink_gradient_kernel(AttentionPlan plan, AttentionOperands of, View delta,
                                     View sinks, View gradient) {
  const auto head = static_cast<std::int64_t>(blockIdx.x);
  float sum = 0;
  for (std::int64_t row = threadIdx.x; row < delta.rows; row += blockDim.x) {
    const std::int64_t first = row * of.statistics.columns;
    float p = 0;
    if (plan.log_sums) {
      p = expf(at(sinks, plan.first_head + head) - at(of.statistics, first + head));
    } else {
      const std::int64_t keys = count_of(plan.keys);
      p = 1;
      for (std::int64_t j = 0; j < keys; ++j) p -= at(of.statistics, first + head * keys + j);
    }
    sum += p * at(delta, row * delta.columns + head);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) add(gradient, plan.first_head + head, -sum);
}

std::size_t floats(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

dim3 blocks_of(const AttentionPlan& plan, const TokenOrder& order, int tile, int heads) {
  const std::int64_t count = order.part * order.parts;
  return {static_cast<unsigned>((count + tile - 1) / tile), static_cast<unsigned>(heads),
          static_cast<unsigned>(plan.sequences)};
}

}  // namespace

void attention(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of) {
  if (tensor_attention(queue, plan, of)) return;
  const std::size_t shared =
      floats((kQueries + kKeys) * (plan.query_width + plan.value_width) + kQueries * kKeys);
  start(queue, "attention", attention_kernel, blocks_of(plan, plan.queries, kQueries, plan.heads),
        kBlock / 2, shared, plan, of, of.sinks != nullptr,
        of.sinks == nullptr ? View{} : *of.sinks);
}

void attention_gradient(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of,
                        const AttentionGradients& gradients) {
  const Scratch delta(queue, of.output.rows, plan.heads, ElementType::f32);
  const std::int64_t width = plan.value_width;  // heads lie side by side
  const RowTeams teams = row_teams(width);
  start(queue, "delta", width % 8 == 0 ? delta_kernel<8> : delta_kernel<1>,
        dim3(row_blocks(delta->size(), teams)), teams.threads, 0, *delta, of.output,
        gradients.output_gradient, width, teams.team);
  if (of.sinks != nullptr) {
    start(queue, "sink_gradient", sink_gradient_kernel, dim3(static_cast<unsigned>(plan.heads)),
          kBlock, 0, plan, of, *delta, *of.sinks, *gradients.sinks);
  }
  if (tensor_attention_gradient(queue, plan, of, gradients, *delta)) return;
  const std::int64_t widths = plan.query_width + plan.value_width;
  const std::int64_t tiles = (kQueries + kKeys) * widths + 2 * kQueries * kKeys;
  start(queue, "query_gradient", query_gradient_kernel,
        blocks_of(plan, plan.queries, kQueries, plan.heads), kBlock / 2,
        floats(tiles + std::int64_t{kQueries} * plan.query_width), plan, of, *delta,
        gradients.output_gradient, gradients.queries, gradients.add_queries);
  start(queue, "key_gradient", key_gradient_kernel,
        blocks_of(plan, plan.keys, kKeys, plan.kv_heads), kBlock / 2,
        floats(key_gradient_floats(plan.query_width, plan.value_width)), plan, of, *delta,
        gradients);
}

}  // namespace trainyard
