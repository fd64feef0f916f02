// Embedding, cross-entropy, and the optimizer.
#include "executor/cuda/kernels/places.h"
#include "executor/cuda/kernels/rows.h"

namespace trainyard {
namespace {

struct Embedding {
  View out, tokens, table;
  std::int64_t first_word;
  template <int N>
  __device__ void run(const Spot& spot) const {
    const auto word = static_cast<std::int64_t>(at(tokens, spot.row)) - first_word;
    const bool mine = word >= 0 && word < table.rows;
    store<N>(out, spot.i, mine ? load<N>(table, word * table.columns + spot.column) : Pack<N>{});
  }
};

// To the row of a table, the row of a gradient.
template <int N>
__device__ void add_row_of(const View& table, std::int64_t word, const View& dout,
                           std::int64_t row) {
  for (std::int64_t c = std::int64_t{threadIdx.x} * N; c < table.columns;
       c += std::int64_t{blockDim.x} * N) {
    Pack<N> sum = load<N>(table, word * table.columns + c);
    const Pack<N> more = load<N>(dout, row * dout.columns + c);
    for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    store<N>(table, word * table.columns + c, sum);
  }
}

// A block a token: where its word stands for the first time, looks for the others of it and adds
// their rows, in their order.
template <int N>
__global__ void embedding_gradient_kernel(View table, View tokens, View dout,
                                          std::int64_t first_word) {
  __shared__ bool is_word[kBlock];
  for (std::int64_t leader = blockIdx.x; leader < tokens.rows; leader += gridDim.x) {
    const float number = at(tokens, leader);
    const auto word = static_cast<std::int64_t>(number) - first_word;
    bool was_before = word < 0 || word >= table.rows;
    for (std::int64_t first = 0; first < leader && !was_before; first += blockDim.x) {
      const std::int64_t token = first + threadIdx.x;
      was_before = __syncthreads_or(token < leader && at(tokens, token) == number) != 0;
    }
    if (was_before) continue;
    for (std::int64_t first = leader; first < tokens.rows; first += blockDim.x) {
      const std::int64_t token = first + threadIdx.x;
      const bool hit = token < tokens.rows && at(tokens, token) == number;
      is_word[threadIdx.x] = hit;
      if (__syncthreads_or(hit) == 0) continue;
      for (unsigned t = 0; t < blockDim.x; ++t) {
        if (is_word[t]) add_row_of<N>(table, word, dout, first + t);
      }
      __syncthreads();
    }
  }
}

struct Positions {
  View out, in, table;
  RowPlaces places;
  template <int N>
  __device__ void run(const Spot& at) const {
    const std::int64_t position = position_of(places, at.row);
    Pack<N> sum = load<N>(in, at.i);
    const Pack<N> more = load<N>(table, position * table.columns + at.column);
    for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    store<N>(out, at.i, sum);
  }
};

// The rows of one position are `part` apart, one of each sequence.
struct PositionsGradient {
  View table, dout;
  RowPlaces places;
  template <int N>
  __device__ void run(const Spot& at) const {
    Pack<N> sum{};
    for (std::int64_t row = at.row; row < dout.rows; row += places.part) {
      const Pack<N> more = load<N>(dout, row * dout.columns + at.column);
      for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    }
    const std::int64_t to = position_of(places, at.row) * table.columns + at.column;
    const Pack<N> before = load<N>(table, to);
    for (int k = 0; k < N; ++k) sum.x[k] = before.x[k] + sum.x[k];
    store<N>(table, to, sum);
  }
};

// ---- Cross-entropy: a block a row ---------------------------------------------------------------

struct LargestLogit {
  const View& logits;
  float largest;
  template <int N>
  __device__ void run(std::int64_t i) {
    const Pack<N> x = load<N>(logits, i);
    for (int k = 0; k < N; ++k) largest = fmaxf(largest, x.x[k]);
  }
};

template <int N>
__global__ void cross_entropy_max_kernel(View out, View logits, std::int64_t words) {
  constexpr float kLowest = -3.402823466e+38F;
  for (std::int64_t row = blockIdx.x; row < logits.rows; row += gridDim.x) {
    LargestLogit mine{logits, kLowest};
    each_of<N>(stretch_of_row(logits, row, words), threadIdx.x, blockDim.x, mine);
    const float largest = block_max(mine.largest);
    if (threadIdx.x == 0) put(out, row, largest);
  }
}

struct SumOfPowers {
  const View& logits;
  float largest, sum = 0;
  template <int N>
  __device__ void run(std::int64_t i) {
    const Pack<N> x = load<N>(logits, i);
    for (int k = 0; k < N; ++k) sum += expf(x.x[k] - largest);
  }
};

template <int N>
__global__ void cross_entropy_sum_kernel(View sum, View label_logit, View logits, View largest,
                                         View labels, LocalWords words) {
  for (std::int64_t row = blockIdx.x; row < logits.rows; row += gridDim.x) {
    SumOfPowers of{logits, at(largest, row)};
    each_of<N>(stretch_of_row(logits, row, words.words), threadIdx.x, blockDim.x, of);
    const float mine = block_sum(of.sum);
    if (threadIdx.x != 0) continue;
    const auto label = static_cast<std::int64_t>(at(labels, row)) - words.first;
    const bool here = label >= 0 && label < words.words;
    put(sum, row * sum.columns, mine);
    put(label_logit, row * label_logit.columns + label_logit.columns - 1,
        here ? at(logits, row * logits.columns + label) : 0);
  }
}

// One block.
__global__ void cross_entropy_loss_kernel(View loss, View largest, View sum, View label_logit,
                                          float tokens) {
  float mine = 0;
  for (std::int64_t row = threadIdx.x; row < largest.rows; row += blockDim.x) {
    const float logit = at(label_logit, row * label_logit.columns + label_logit.columns - 1);
    mine += logf(at(sum, row * sum.columns)) + at(largest, row) - logit;
  }
  mine = block_sum(mine);
  if (threadIdx.x == 0) add(loss, 0, mine / tokens);
}

struct LogitGradient {
  const View &gradient, &logits;
  std::int64_t row_begin, words, label;  // elements; the label's column, of another rank's: none
  float largest, sum, tokens;
  template <int N>
  __device__ void run(std::int64_t i) const {
    Pack<N> p = load<N>(logits, i);
    for (int k = 0; k < N; ++k) {
      const std::int64_t column = i + k - row_begin;
      p.x[k] = column < words ? expf(p.x[k] - largest) / sum - (column == label ? 1.0F : 0.0F) : 0;
      p.x[k] /= tokens;
    }
    store<N>(gradient, i, p);
  }
};

template <int N>
__global__ void cross_entropy_gradient_kernel(View gradient, View logits, View largest, View sum,
                                              View labels, LocalWords words, float tokens) {
  for (std::int64_t row = blockIdx.x; row < logits.rows; row += gridDim.x) {
    const LogitGradient of{gradient,
                           logits,
                           row * logits.columns,
                           words.words,
                           static_cast<std::int64_t>(at(labels, row)) - words.first,
                           at(largest, row),
                           at(sum, row * sum.columns),
                           tokens};
    each_of<N>(stretch_of_row(logits, row, logits.columns), threadIdx.x, blockDim.x, of);
  }
}

// ---- Update
// --------------------------------------------------------------------------------------

struct Squares {
  const View& of;
  float scale, sum = 0;
  template <int N>
  __device__ void run(std::int64_t i) {
    const Pack<N> x = load<N>(of, i);
    for (int k = 0; k < N; ++k) sum += x.x[k] / scale * (x.x[k] / scale);
  }
};

template <int N>
__global__ void squares_kernel(View parts, View of, float scale, std::int64_t even) {
  Squares mine{of, scale};
  each_of<N>(Stretch{0, of.size(), even}, global_thread(), all_threads(), mine);
  const float sum = block_sum(mine.sum);
  if (threadIdx.x == 0) put(parts, blockIdx.x, sum);
}

// One block: each thread its share of the parts, then one thread those.
__global__ void add_squares_kernel(View sum, View parts, double replicas) {
  __shared__ double shares[kBlock];
  double mine = 0;
  for (std::int64_t i = threadIdx.x; i < parts.rows; i += blockDim.x) {
    mine += static_cast<double>(at(parts, i));
  }
  shares[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x > 0) return;
  double all = 0;
  for (unsigned i = 0; i < blockDim.x; ++i) all += shares[i];
  add(sum, 0, static_cast<float>(all / replicas));
}

__device__ float updated(float weight, float gradient, float* state, const UpdateRule& rule) {
  if (rule.moments == 0) return weight - rule.rate * gradient;
  if (rule.moments == 1) {
    state[0] = rule.momentum * state[0] + gradient;
    return weight - rule.rate * state[0];
  }
  state[0] = rule.first * state[0] + (1 - rule.first) * gradient;
  state[1] = rule.second * state[1] + (1 - rule.second) * gradient * gradient;
  const float along =
      state[0] / rule.first_whole / (sqrtf(state[1] / rule.second_whole) + rule.epsilon);
  return weight - rule.rate * (along + (rule.decays ? rule.decay * weight : 0));
}

// What gradients are multiplied with; negative: the step is left out.
__device__ float clipped(const View& squared_norm, const UpdateRule& rule) {
  const float norm = rule.clips ? sqrtf(at(squared_norm, 0)) : 0;
  if (rule.skips && rule.clips && !(norm < INFINITY)) return -1;
  return (rule.clips ? fminf(1.0F, rule.clip_norm / norm) : 1) / rule.scale;
}

// The new weight of one element, whose `columns` states are updated.
__device__ float stepped(float weight, float gradient, float* state, std::int64_t columns,
                         const UpdateRule& rule) {
  float& full = state[columns > 0 ? columns - 1 : 0];
  if (rule.keeps_weights && !rule.first_step) weight = full;
  weight = updated(weight, gradient, state, rule);
  if (rule.keeps_weights) full = weight;
  return weight;
}

__global__ void update_kernel(View weight, View gradient, View states, View squared_norm,
                              UpdateRule rule) {
  const float clip = clipped(squared_norm, rule);
  if (clip < 0) return;
  for (std::int64_t i = global_thread(); i < weight.size(); i += all_threads()) {
    auto* state = static_cast<float*>(states.data) + i * states.columns;
    put(weight, i, stepped(at(weight, i), clip * at(gradient, i), state, states.columns, rule));
  }
}

// Eight elements a thread. Their kStates states lie side by side, element by element: a block
// brings those of its elements together and takes them apart in shared memory. Requires: whole
// packs, aligned.
constexpr int kAtOnce = kBlock / 2;  // threads: the states of their elements are 12 KiB at most
template <int kStates>
__global__ void update_packs_kernel(View weight, View gradient, View states, View squared_norm,
                                    UpdateRule rule) {
  constexpr int kFours = 2 * kStates;  // four states each, of a thread's elements
  __shared__ float4 staged[kAtOnce * (kFours > 0 ? kFours : 1)];
  const float clip = clipped(squared_norm, rule);
  if (clip < 0) return;
  auto* all = static_cast<float4*>(states.data);
  const std::int64_t packs = weight.size() / 8;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kAtOnce; first < packs;
       first += std::int64_t{gridDim.x} * kAtOnce) {
    const std::int64_t i = (first + threadIdx.x) * 8;
    const bool inside = i < weight.size();
    const std::int64_t fours = (packs - first < kAtOnce ? packs - first : kAtOnce) * kFours;
    const bool reads = inside && (!rule.keeps_weights || rule.first_step);
    const Raw w_raw = reads ? fetch(weight, i) : Raw{};
    const Raw g_raw = inside ? fetch(gradient, i) : Raw{};
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
      const std::int64_t at_four = threadIdx.x + std::int64_t{k} * kAtOnce;
      if (at_four < fours) staged[at_four] = all[first * kFours + at_four];
    }
    __syncthreads();
    if (inside) {
      Pack<8> w = unpacked<8>(weight, i, w_raw);
      const Pack<8> g = unpacked<8>(gradient, i, g_raw);
      // By fours here too: one by one, eight threads would meet in a bank.
      float state[8 * (kStates > 0 ? kStates : 1)];
      float4* mine = staged + threadIdx.x * kFours;
#pragma unroll
      for (int k = 0; k < kFours; ++k) memcpy(state + 4 * k, mine + k, sizeof(float4));
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        w.x[k] = stepped(w.x[k], clip * g.x[k], state + k * kStates, kStates, rule);
      }
#pragma unroll
      for (int k = 0; k < kFours; ++k) memcpy(mine + k, state + 4 * k, sizeof(float4));
      store<8>(weight, i, w);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
      const std::int64_t at_four = threadIdx.x + std::int64_t{k} * kAtOnce;
      if (at_four < fours) all[first * kFours + at_four] = staged[at_four];
    }
    __syncthreads();  // nobody stages anew what others still take away
  }
}

void update_packs(const Queue& queue, const View& weight, const View& gradient, const View& states,
                  const View& squared_norm, const UpdateRule& rule) {
  const auto kernel = states.columns == 3   ? update_packs_kernel<3>
                      : states.columns == 2 ? update_packs_kernel<2>
                      : states.columns == 1 ? update_packs_kernel<1>
                                            : update_packs_kernel<0>;
  const std::int64_t blocks = (weight.size() / 8 + kAtOnce - 1) / kAtOnce;
  start(queue, "update", kernel, dim3(blocks_at_most(blocks)), kAtOnce, 0, weight, gradient, states,
        squared_norm, rule);
}

}  // namespace

void embedding(const Queue& queue, const View& out, const View& tokens, const View& table,
               std::int64_t first_word) {
  each(queue, "embedding", Embedding{out, tokens, table, first_word}, out.rows, out.columns);
}

void embedding_gradient(const Queue& queue, const View& table_gradient, const View& tokens,
                        const View& dout, std::int64_t first_word) {
  start(queue, "embedding_gradient",
        dout.columns % 8 == 0 ? embedding_gradient_kernel<8> : embedding_gradient_kernel<1>,
        dim3(blocks_at_most(tokens.rows)), kBlock, 0, table_gradient, tokens, dout, first_word);
}

void positions(const Queue& queue, const View& out, const View& in, const View& table,
               const RowPlaces& places) {
  each(queue, "positions", Positions{out, in, table, places}, out.rows, out.columns);
}

void positions_gradient(const Queue& queue, const View& table_gradient, const View& dout,
                        const RowPlaces& places) {
  const std::int64_t rows = dout.rows < places.part ? dout.rows : places.part;
  each(queue, "positions_gradient", PositionsGradient{table_gradient, dout, places}, rows,
       dout.columns);
}

void cross_entropy_max(const Queue& queue, const View& out, const View& logits, LocalWords words) {
  start(queue, "cross_entropy_max",
        begins_even(logits) ? cross_entropy_max_kernel<8> : cross_entropy_max_kernel<1>,
        dim3(blocks_at_most(logits.rows)), kBlock, 0, out, logits, words.words);
}

void cross_entropy_sum(const Queue& queue, const View& sum, const View& label_logit,
                       const View& logits, const View& largest, const View& labels,
                       LocalWords words) {
  start(queue, "cross_entropy_sum",
        begins_even(logits) ? cross_entropy_sum_kernel<8> : cross_entropy_sum_kernel<1>,
        dim3(blocks_at_most(logits.rows)), kBlock, 0, sum, label_logit, logits, largest, labels,
        words);
}

void cross_entropy_loss(const Queue& queue, const View& loss, const View& largest, const View& sum,
                        const View& label_logit, float tokens) {
  start(queue, "cross_entropy_loss", cross_entropy_loss_kernel, dim3(1), kBlock, 0, loss, largest,
        sum, label_logit, tokens);
}

void cross_entropy_gradient(const Queue& queue, const View& gradient, const View& logits,
                            const View& largest, const View& sum, const View& labels,
                            LocalWords words, float tokens) {
  const bool even = begins_even(logits) && begins_even(gradient);
  start(queue, "cross_entropy_gradient",
        even ? cross_entropy_gradient_kernel<8> : cross_entropy_gradient_kernel<1>,
        dim3(blocks_at_most(logits.rows)), kBlock, 0, gradient, logits, largest, sum, labels, words,
        tokens);
}

void add_squares(const Queue& queue, const View& sum, const View& of, const SquaresRule& rule) {
  if (of.size() == 0) return;
  const unsigned blocks = blocks_for((of.size() + 7) / 8);
  const Scratch parts(queue, blocks, 1, ElementType::f32);
  const std::int64_t even = even_place({&of});
  start(queue, "squares", even < 0 ? squares_kernel<1> : squares_kernel<8>, dim3(blocks), kBlock, 0,
        *parts, of, rule.scale, even);
  start(queue, "add_squares", add_squares_kernel, dim3(1), kBlock, 0, sum, *parts, rule.replicas);
}

// In packs from the first place on where all operands are aligned.
void update(const Queue& queue, const View& weight, const View& gradient, const View& states,
            const View* squared_norm, const UpdateRule& rule) {
  const View norm = squared_norm == nullptr ? View{} : *squared_norm;
  const std::int64_t size = weight.size(), even = even_place({&weight, &gradient});
  const auto some = [&](std::int64_t first, std::int64_t count, bool in_packs) {
    if (count == 0) return;
    const View w = weight.from(first, count), g = gradient.from(first, count);
    const View s = states.columns > 0 ? states.rows_from(first, count) : states;
    if (in_packs) return update_packs(queue, w, g, s, norm, rule);
    start(queue, "update", update_kernel, dim3(blocks_for(count)), kBlock, 0, w, g, s, norm, rule);
  };
  const std::int64_t head = even < 0 || even > size ? size : even;
  const std::int64_t packs = (size - head) / 8 * 8;
  const View first_states = states.columns > 0 ? states.rows_from(head, 0) : states;
  if (packs == 0 || even_place({&first_states}) != 0) return some(0, size, false);
  some(0, head, false);
  some(head, packs, true);
  some(head + packs, size - head - packs, false);
}

}  // namespace trainyard
