// Embedding, cross-entropy, and the optimizer.
#include <type_traits>

#include "executor/cuda/kernels/places.h"
#include "executor/cuda/kernels/rows.h"

namespace trainyard {
namespace {

// Calls begin(type, N) with the OneType of `of`, and N = 8 for packs or 1 for single elements.
// Requires: no number in 8 bits.
template <typename Begin>
void with_type(const View& of, bool even, const Begin& begin) {
  const View* const all[] = {&of};
  with_one_type(all, [&](auto type) {
    if (even) {
      begin(type, std::integral_constant<int, 8>{});
    } else {
      begin(type, std::integral_constant<int, 1>{});
    }
    return true;
  });
}

struct WordOf {
  const float* tokens;
  std::int64_t first_word, words;
  __device__ std::int64_t operator()(std::int64_t row) const {
    const std::int64_t word = static_cast<std::int64_t>(tokens[row]) - first_word;
    return word < words ? word : -1;
  }
};

// ---- Gradient of the embedding ------------------------------------------------------------------

// A token's word and row in one number; in ascending order the tokens of a word are adjacent.
using TokenPlace = unsigned long long;
__device__ TokenPlace token_place(unsigned word, unsigned token) {
  return TokenPlace{word} << 32 | token;
}
__device__ unsigned word_of(TokenPlace place) { return static_cast<unsigned>(place >> 32); }
__device__ unsigned token_of(TokenPlace place) { return static_cast<unsigned>(place); }

// The tokens that a block has found and not yet added.
constexpr int kLooked = 8;  // tokens that a thread looks at between two barriers
constexpr int kListed = (kLooked + 4) * kBlock;
struct TokenList {
  TokenPlace found[kListed];
  unsigned short order[kListed];  // found[order[k]] is the k-th in order
  int count;
  __device__ TokenPlace operator[](int k) const { return found[order[k]]; }
};

// Finds the tokens from `first` on whose words belong to this block, in any order.
__device__ void look_for_words(TokenList& list, const View& tokens, std::int64_t first,
                               std::int64_t first_word, std::int64_t words) {
  float number[kLooked];
#pragma unroll
  for (int k = 0; k < kLooked; ++k) {
    const std::int64_t token = first + k * kBlock + threadIdx.x;
    number[k] = token < tokens.rows ? static_cast<const float*>(tokens.data)[token] : -1;
  }
#pragma unroll
  for (int k = 0; k < kLooked; ++k) {
    const int word = static_cast<int>(number[k]) - static_cast<int>(first_word);
    const bool mine =
        word >= 0 && word < words && (static_cast<unsigned>(word) & (gridDim.x - 1)) == blockIdx.x;
    if (mine) {
      list.found[atomicAdd(&list.count, 1)] = token_place(
          static_cast<unsigned>(word), static_cast<unsigned>(first) + k * kBlock + threadIdx.x);
    }
  }
}

// Puts the tokens in order, however they were found, so that a run repeats itself.
__device__ void bring_in_order(TokenList& list, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kBlock) {
    int before = 0;
    for (int other = 0; other < count; ++other) before += list.found[other] < list.found[i] ? 1 : 0;
    list.order[before] = static_cast<unsigned short>(i);
  }
}

// Adds the rows of each word's tokens, one after the other, to the word's row of the table.
template <int N>
__device__ void add_rows_of(const TokenList& list, int count, const View& table, const View& dout,
                            std::int64_t column) {
  Pack<N> sum{};
  for (int first = 0; first < count; first += kUnderWay) {
    Raw before[kUnderWay], more[kUnderWay];
    const auto begins = [&](int i) { return i == 0 || word_of(list[i]) != word_of(list[i - 1]); };
#pragma unroll
    for (int k = 0; k < kUnderWay; ++k) {
      if (first + k >= count) break;
      const TokenPlace place = list[first + k];
      more[k] = fetch_pack<N>(dout, token_of(place) * dout.columns + column);
      if (!begins(first + k)) continue;
      before[k] = fetch_pack<N>(table, word_of(place) * table.columns + column);
    }
#pragma unroll
    for (int k = 0; k < kUnderWay; ++k) {
      const int i = first + k;
      if (i >= count) break;
      const std::int64_t from = token_of(list[i]) * dout.columns + column;
      const std::int64_t to = word_of(list[i]) * table.columns + column;
      if (begins(i)) sum = unpacked<N>(table, to, before[k]);
      const Pack<N> row = unpacked<N>(dout, from, more[k]);
      for (int n = 0; n < N; ++n) sum.x[n] += row.x[n];
      if (i + 1 == count || begins(i + 1)) store<N>(table, to, sum);
    }
  }
}

// Block (x, y) has columns y of the words whose number modulo gridDim.x, a power of two, is x. It
// looks through all tokens, which fit into the cache, and adds the tokens found when the list might
// become full or the tokens end. The table holds floats, or the type of `dout`.
template <typename Type, int N, bool kFloats>
__global__ void __launch_bounds__(kBlock)
    embedding_gradient_kernel(View table, View tokens, View dout, std::int64_t first_word) {
  __shared__ TokenList list;
  table = kFloats ? OneType<ElementType::f32>::of(table) : Type::of(table);
  dout = Type::of(dout);
  const std::int64_t column = (std::int64_t{blockIdx.y} * kBlock + threadIdx.x) * N;
  if (threadIdx.x == 0) list.count = 0;
  __syncthreads();
  for (std::int64_t first = 0; first < tokens.rows; first += kLooked * kBlock) {
    look_for_words(list, tokens, first, first_word, table.rows);
    __syncthreads();
    const int count = list.count;
    const bool last = first + kLooked * kBlock >= tokens.rows;
    if (last || count > kListed - kLooked * kBlock) bring_in_order(list, count);
    __syncthreads();
    if (!last && count <= kListed - kLooked * kBlock) continue;
    if (column < table.columns) add_rows_of<N>(list, count, table, dout, column);
    if (threadIdx.x == 0) list.count = 0;
    __syncthreads();
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

// Rows of the same position are `part` apart, one for each sequence.
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

template <int N, typename Visit>
__device__ void each_of_row(const View& of, std::int64_t columns, const Visit& visit) {
  each_pack<N>(of, stretch_of_row(of, blockIdx.x, columns), threadIdx.x, blockDim.x, visit);
}

template <typename Type, int N>
__global__ void __launch_bounds__(kBlock)
    cross_entropy_max_kernel(View out, View logits, std::int64_t words) {
  logits = Type::of(logits);
  float largest = -3.402823466e+38F;
  each_of_row<N>(logits, words, [&](std::int64_t, const auto& pack) {
    for (const float x : pack.x) largest = fmaxf(largest, x);
  });
  largest = block_max(largest);
  if (threadIdx.x == 0) put(out, blockIdx.x, largest);
}

template <typename Type, int N>
__global__ void __launch_bounds__(kBlock)
    cross_entropy_sum_kernel(View sum, View label_logit, View logits, View largest, View labels,
                             LocalWords words) {
  logits = Type::of(logits);
  largest.type = labels.type = ElementType::f32;
  const std::int64_t row = blockIdx.x;
  const float most = at(largest, row), label_number = at(labels, row);
  float mine = 0, logit = 0;
  each_of_row<N>(logits, words.words, [&](std::int64_t, const auto& pack) {
    for (const float x : pack.x) mine += exponential(x - most);
  });
  const auto label = static_cast<std::int64_t>(label_number) - words.first;
  if (threadIdx.x == 0 && label >= 0 && label < words.words) {
    logit = at(logits, row * logits.columns + label);
  }
  mine = block_sum(mine);
  if (threadIdx.x != 0) return;
  put(sum, row * sum.columns, mine);
  put(label_logit, row * label_logit.columns + label_logit.columns - 1, logit);
}

// The one block is as large as possible, so that it waits for memory only a few times.
constexpr int kLossThreads = 4 * kBlock;
__global__ void cross_entropy_loss_kernel(View loss, View largest, View sum, View label_logit,
                                          float tokens) {
  largest.type = sum.type = label_logit.type = ElementType::f32;
  float mine = 0;
#pragma unroll 8
  for (std::int64_t row = threadIdx.x; row < largest.rows; row += kLossThreads) {
    const float logit = at(label_logit, row * label_logit.columns + label_logit.columns - 1);
    mine += logf(at(sum, row * sum.columns)) + at(largest, row) - logit;
  }
  mine = block_sum(mine);
  if (threadIdx.x == 0) add(loss, 0, mine / tokens);
}

// Padding columns get 0. The label's column, if it is on this rank, is reduced by one token's
// share.
template <typename Type, int N>
__global__ void __launch_bounds__(kBlock)
    cross_entropy_gradient_kernel(View gradient, View logits, View largest, View sum, View labels,
                                  LocalWords words, float tokens) {
  gradient = Type::of(gradient);
  logits = Type::of(logits);
  largest.type = sum.type = labels.type = ElementType::f32;
  const std::int64_t row = blockIdx.x, begin = row * logits.columns, end = begin + words.words;
  const float most = at(largest, row), factor = 1 / (at(sum, row * sum.columns) * tokens);
  const std::int64_t label = begin + static_cast<std::int64_t>(at(labels, row)) - words.first;
  each_of_row<N>(logits, logits.columns, [&](std::int64_t i, auto pack) {
    constexpr int kCount = std::extent_v<decltype(pack.x)>;
    for (int k = 0; k < kCount; ++k) pack.x[k] = exponential(pack.x[k] - most) * factor;
    if (label >= i && label < i + kCount) {
      for (int k = 0; k < kCount; ++k) pack.x[k] -= i + k == label ? 1 / tokens : 0;
    }
    if (i + kCount > end) {
      for (int k = 0; k < kCount; ++k) pack.x[k] = i + k < end ? pack.x[k] : 0;
    }
    store<kCount>(gradient, i, pack);
  });
}

// ---- Update -------------------------------------------------------------------------------------

template <typename Type, int N>
__global__ void __launch_bounds__(kBlock)
    squares_kernel(View parts, View of, float inverse, std::int64_t even) {
  of = Type::of(of);
  float sum = 0;
  each_pack<N>(of, Stretch{0, of.size(), even}, global_thread(), all_threads(),
               [&](std::int64_t, const auto& pack) {
                 for (const float x : pack.x) sum += inverse * x * (inverse * x);
               });
  sum = block_sum(sum);
  if (threadIdx.x == 0) put(parts, blockIdx.x, sum);
}

// Run by one block: each thread sums its share of the parts, then the shares are added up in
// halves.
__global__ void add_squares_kernel(View sum, View parts, double replicas) {
  __shared__ double shares[kBlock];
  parts.type = ElementType::f32;
  double mine = 0;
#pragma unroll 8
  for (std::int64_t i = threadIdx.x; i < parts.rows; i += kBlock) {
    mine += static_cast<double>(at(parts, i));
  }
  shares[threadIdx.x] = mine;
  for (unsigned half = kBlock / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shares[threadIdx.x] += shares[threadIdx.x + half];
  }
  if (threadIdx.x == 0) add(sum, 0, static_cast<float>(shares[0] / replicas));
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

// The factor of the gradients; negative: the update is left out.
__device__ float clipped(const View& squared_norm, const UpdateRule& rule) {
  const float norm = rule.clips ? sqrtf(at(squared_norm, 0)) : 0;
  if (rule.skips && rule.clips && !(norm < INFINITY)) return -1;
  return (rule.clips ? fminf(1.0F, rule.clip_norm / norm) : 1) / rule.scale;
}

// The new weight of one element; its `columns` states are updated.
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

// Updates eight elements in each thread. The states of an element lie side by side; a block brings
// the states of all its elements at once into shared memory, where the threads take theirs.
// Requires: whole packs, aligned.
constexpr int kAtOnce = kBlock / 2;  // threads; the states of their elements take 12 KiB at most
template <int kStates>
__global__ void update_packs_kernel(View weight, View gradient, View states, View squared_norm,
                                    UpdateRule rule) {
  constexpr int kFours = 2 * kStates;  // float4s of states in a thread's elements
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
      // Four states at a time: one by one, eight threads would meet in a bank.
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
    __syncthreads();  // others may still read what is staged
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
  pick_rows(queue, "embedding", out, table,
            WordOf{static_cast<const float*>(tokens.data), first_word, table.rows});
}

void embedding_gradient(const Queue& queue, const View& table_gradient, const View& tokens,
                        const View& dout, std::int64_t first_word) {
  unsigned shares = 1;  // parts that the words are dealt into
  while (shares < 1024 && shares < tokens.rows) shares *= 2;
  const bool floats = table_gradient.type == ElementType::f32;
  with_type(dout, dout.columns % 8 == 0, [&](auto type, auto n) {
    const std::int64_t across = (dout.columns + n * kBlock - 1) / (n * kBlock);
    start(queue, "embedding_gradient",
          floats ? embedding_gradient_kernel<decltype(type), n, true>
                 : embedding_gradient_kernel<decltype(type), n, false>,
          dim3(shares, static_cast<unsigned>(across)), kBlock, 0, table_gradient, tokens, dout,
          first_word);
  });
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
  with_type(logits, begins_even(logits), [&](auto type, auto n) {
    start(queue, "cross_entropy_max", cross_entropy_max_kernel<decltype(type), n>,
          dim3(static_cast<unsigned>(logits.rows)), kBlock, 0, out, logits, words.words);
  });
}

void cross_entropy_sum(const Queue& queue, const View& sum, const View& label_logit,
                       const View& logits, const View& largest, const View& labels,
                       LocalWords words) {
  with_type(logits, begins_even(logits), [&](auto type, auto n) {
    start(queue, "cross_entropy_sum", cross_entropy_sum_kernel<decltype(type), n>,
          dim3(static_cast<unsigned>(logits.rows)), kBlock, 0, sum, label_logit, logits, largest,
          labels, words);
  });
}

void cross_entropy_loss(const Queue& queue, const View& loss, const View& largest, const View& sum,
                        const View& label_logit, float tokens) {
  start(queue, "cross_entropy_loss", cross_entropy_loss_kernel, dim3(1), kLossThreads, 0, loss,
        largest, sum, label_logit, tokens);
}

void cross_entropy_gradient(const Queue& queue, const View& gradient, const View& logits,
                            const View& largest, const View& sum, const View& labels,
                            LocalWords words, float tokens) {
  const bool even = begins_even(logits) && begins_even(gradient);
  with_type(logits, even, [&](auto type, auto n) {
    start(queue, "cross_entropy_gradient", cross_entropy_gradient_kernel<decltype(type), n>,
          dim3(static_cast<unsigned>(logits.rows)), kBlock, 0, gradient, logits, largest, sum,
          labels, words, tokens);
  });
}

void add_squares(const Queue& queue, const View& sum, const View& of, const SquaresRule& rule) {
  if (of.size() == 0) return;
  const unsigned blocks = blocks_for((of.size() + 7) / 8);
  const Scratch parts(queue, blocks, 1, ElementType::f32);
  const std::int64_t even = even_place({&of});
  with_type(of, even >= 0, [&](auto type, auto n) {
    start(queue, "squares", squares_kernel<decltype(type), n>, dim3(blocks), kBlock, 0, *parts, of,
          1 / rule.scale, even);
  });
  start(queue, "add_squares", add_squares_kernel, dim3(1), kBlock, 0, sum, *parts, rule.replicas);
}

// Updates in packs from the first place where all operands are aligned.
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
