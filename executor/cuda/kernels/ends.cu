// Embedding, cross-entropy, and the optimizer.
#include "executor/cuda/kernels/places.h"

namespace trainyard {
namespace {

__global__ void embedding_kernel(View out, View tokens, View table, std::int64_t first_word) {
  for (std::int64_t i = global_thread(); i < out.size(); i += all_threads()) {
    const auto word = static_cast<std::int64_t>(at(tokens, i / out.columns)) - first_word;
    const bool mine = word >= 0 && word < table.rows;
    put(out, i, mine ? at(table, word * table.columns + i % out.columns) : 0);
  }
}

// A block a word: looks for it among the tokens and adds their rows, in their order.
__global__ void embedding_gradient_kernel(View table, View tokens, View dout,
                                          std::int64_t first_word) {
  __shared__ bool is_word[kBlock];
  for (std::int64_t word = blockIdx.x; word < table.rows; word += gridDim.x) {
    for (std::int64_t first = 0; first < tokens.rows; first += blockDim.x) {
      const std::int64_t token = first + threadIdx.x;
      const bool hit =
          token < tokens.rows && static_cast<std::int64_t>(at(tokens, token)) - first_word == word;
      is_word[threadIdx.x] = hit;
      if (__syncthreads_or(hit) == 0) continue;
      for (unsigned t = 0; t < blockDim.x; ++t) {
        if (!is_word[t]) continue;
        for (std::int64_t c = threadIdx.x; c < table.columns; c += blockDim.x) {
          add(table, word * table.columns + c, at(dout, (first + t) * dout.columns + c));
        }
      }
      __syncthreads();
    }
  }
}

__global__ void positions_kernel(View out, View in, View table, RowPlaces places) {
  for (std::int64_t i = global_thread(); i < out.size(); i += all_threads()) {
    const std::int64_t position = position_of(places, i / in.columns);
    put(out, i, at(in, i) + at(table, position * table.columns + i % in.columns));
  }
}

// The rows of one position are `part` apart, one of each sequence.
__global__ void positions_gradient_kernel(View table, View dout, RowPlaces places) {
  const std::int64_t rows = dout.rows < places.part ? dout.rows : places.part;
  for (std::int64_t i = global_thread(); i < rows * dout.columns; i += all_threads()) {
    const std::int64_t column = i % dout.columns;
    float sum = 0;
    for (std::int64_t row = i / dout.columns; row < dout.rows; row += places.part) {
      sum += at(dout, row * dout.columns + column);
    }
    add(table, position_of(places, i / dout.columns) * table.columns + column, sum);
  }
}

// ---- Cross-entropy: a block a row ---------------------------------------------------------------

__global__ void cross_entropy_max_kernel(View out, View logits, std::int64_t words) {
  constexpr float kLowest = -3.402823466e+38F;
  for (std::int64_t row = blockIdx.x; row < logits.rows; row += gridDim.x) {
    float largest = kLowest;
    for (std::int64_t c = threadIdx.x; c < words; c += blockDim.x) {
      largest = fmaxf(largest, at(logits, row * logits.columns + c));
    }
    largest = block_max(largest);
    if (threadIdx.x == 0) put(out, row, largest);
  }
}

__global__ void cross_entropy_sum_kernel(View sum, View label_logit, View logits, View largest,
                                         View labels, LocalWords words) {
  for (std::int64_t row = blockIdx.x; row < logits.rows; row += gridDim.x) {
    float mine = 0;
    for (std::int64_t c = threadIdx.x; c < words.words; c += blockDim.x) {
      mine += expf(at(logits, row * logits.columns + c) - at(largest, row));
    }
    mine = block_sum(mine);
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

__global__ void cross_entropy_gradient_kernel(View logits, View largest, View sum, View labels,
                                              LocalWords words, float tokens) {
  for (std::int64_t i = global_thread(); i < logits.size(); i += all_threads()) {
    const std::int64_t row = i / logits.columns, column = i % logits.columns;
    float p = 0;
    if (column < words.words) {
      p = expf(at(logits, i) - at(largest, row)) / at(sum, row * sum.columns);
      const auto label = static_cast<std::int64_t>(at(labels, row)) - words.first;
      if (column == label) p -= 1;
    }
    put(logits, i, p / tokens);
  }
}

// ---- Update
// --------------------------------------------------------------------------------------

__global__ void squares_kernel(View parts, View of, float scale) {
  float sum = 0;
  for (std::int64_t i = global_thread(); i < of.size(); i += all_threads()) {
    const float x = at(of, i) / scale;
    sum += x * x;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) put(parts, blockIdx.x, sum);
}

__global__ void add_squares_kernel(View sum, View parts, double replicas) {
  double all = 0;
  for (std::int64_t i = 0; i < parts.rows; ++i) all += static_cast<double>(at(parts, i));
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

__global__ void update_kernel(View weight, View gradient, View states, View squared_norm,
                              UpdateRule rule) {
  const float norm = rule.clips ? sqrtf(at(squared_norm, 0)) : 0;
  const float clip = (rule.clips ? fminf(1.0F, rule.clip_norm / norm) : 1) / rule.scale;
  if (rule.skips && rule.clips && !(norm < INFINITY)) return;
  for (std::int64_t i = global_thread(); i < weight.size(); i += all_threads()) {
    auto* state = static_cast<float*>(states.data) + i * states.columns;
    float* full = state + states.columns - 1;
    float w = rule.keeps_weights && !rule.first_step ? *full : at(weight, i);
    w = updated(w, clip * at(gradient, i), state, rule);
    if (rule.keeps_weights) *full = w;
    put(weight, i, w);
  }
}

unsigned row_blocks(const View& of) {
  constexpr std::int64_t kMost = 132 * 16;
  return static_cast<unsigned>(of.rows < kMost ? of.rows : kMost);
}

}  // namespace

void embedding(const Queue& queue, const View& out, const View& tokens, const View& table,
               std::int64_t first_word) {
  start(queue, "embedding", embedding_kernel, dim3(blocks_for(out.size())), kBlock, 0, out, tokens,
        table, first_word);
}

void embedding_gradient(const Queue& queue, const View& table_gradient, const View& tokens,
                        const View& dout, std::int64_t first_word) {
  start(queue, "embedding_gradient", embedding_gradient_kernel, dim3(row_blocks(table_gradient)),
        kBlock, 0, table_gradient, tokens, dout, first_word);
}

void positions(const Queue& queue, const View& out, const View& in, const View& table,
               const RowPlaces& places) {
  start(queue, "positions", positions_kernel, dim3(blocks_for(out.size())), kBlock, 0, out, in,
        table, places);
}

void positions_gradient(const Queue& queue, const View& table_gradient, const View& dout,
                        const RowPlaces& places) {
  start(queue, "positions_gradient", positions_gradient_kernel, dim3(blocks_for(dout.size())),
        kBlock, 0, table_gradient, dout, places);
}

void cross_entropy_max(const Queue& queue, const View& out, const View& logits, LocalWords words) {
  start(queue, "cross_entropy_max", cross_entropy_max_kernel, dim3(row_blocks(logits)), kBlock, 0,
        out, logits, words.words);
}

void cross_entropy_sum(const Queue& queue, const View& sum, const View& label_logit,
                       const View& logits, const View& largest, const View& labels,
                       LocalWords words) {
  start(queue, "cross_entropy_sum", cross_entropy_sum_kernel, dim3(row_blocks(logits)), kBlock, 0,
        sum, label_logit, logits, largest, labels, words);
}

void cross_entropy_loss(const Queue& queue, const View& loss, const View& largest, const View& sum,
                        const View& label_logit, float tokens) {
  start(queue, "cross_entropy_loss", cross_entropy_loss_kernel, dim3(1), kBlock, 0, loss, largest,
        sum, label_logit, tokens);
}

void cross_entropy_gradient(const Queue& queue, const View& logits, const View& largest,
                            const View& sum, const View& labels, LocalWords words, float tokens) {
  start(queue, "cross_entropy_gradient", cross_entropy_gradient_kernel,
        dim3(blocks_for(logits.size())), kBlock, 0, logits, largest, sum, labels, words, tokens);
}

void add_squares(const Queue& queue, const View& sum, const View& of, const SquaresRule& rule) {
  if (of.size() == 0) return;
  const unsigned blocks = blocks_for(of.size());
  const Scratch parts(queue, blocks, 1, ElementType::f32);
  start(queue, "squares", squares_kernel, dim3(blocks), kBlock, 0, *parts, of, rule.scale);
  start(queue, "add_squares", add_squares_kernel, dim3(1), 1, 0, sum, *parts, rule.replicas);
}

void update(const Queue& queue, const View& weight, const View& gradient, const View& states,
            const View* squared_norm, const UpdateRule& rule) {
  start(queue, "update", update_kernel, dim3(blocks_for(weight.size())), kBlock, 0, weight,
        gradient, states, squared_norm == nullptr ? View{} : *squared_norm, rule);
}

}  // namespace trainyard
