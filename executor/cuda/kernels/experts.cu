// Routing and the order of copies. What is dropped carries −1 − expert; orders are stable, so that
// every rank and the host come to the same one.
#include "executor/cuda/kernels/access.h"

namespace trainyard {
namespace {

__device__ std::int64_t expert_of(float mark) {
  return static_cast<std::int64_t>(mark < 0 ? -1 - mark : mark);
}

__device__ int* integers(const View& view) { return static_cast<int*>(view.data); }

// The gates of a token: the softmax over the logits of its experts.
__device__ void gates_of(const View& logits, const View& experts, std::int64_t row, float* gates) {
  const auto count = static_cast<int>(experts.columns);
  float largest = -INFINITY, sum = 0;
  for (int j = 0; j < count; ++j) {
    gates[j] = at(logits, row * logits.columns + expert_of(at(experts, row * experts.columns + j)));
    largest = fmaxf(largest, gates[j]);
  }
  for (int j = 0; j < count; ++j) sum += gates[j] = expf(gates[j] - largest);
  for (int j = 0; j < count; ++j) gates[j] /= sum;
}

constexpr int kMostChosen = 64;

// A thread a token: the best experts, the first of equals first.
__global__ void route_kernel(View gates, View experts, View logits, View correction,
                             bool corrects) {
  const auto chosen = static_cast<int>(gates.columns);
  for (std::int64_t row = global_thread(); row < logits.rows; row += all_threads()) {
    float last = INFINITY;
    std::int64_t last_expert = -1;
    for (int j = 0; j < chosen; ++j) {
      float best = -INFINITY;
      std::int64_t best_expert = -1;
      for (std::int64_t e = 0; e < logits.columns; ++e) {
        const float score =
            at(logits, row * logits.columns + e) + (corrects ? at(correction, e) : 0);
        const bool left = score < last || (score == last && e > last_expert);
        if (left && (best_expert < 0 || score > best)) best = score, best_expert = e;
      }
      put(experts, row * chosen + j, static_cast<float>(best_expert));
      last = best, last_expert = best_expert;
    }
    float all[kMostChosen];
    gates_of(logits, experts, row, all);
    for (int j = 0; j < chosen; ++j) put(gates, row * chosen + j, all[j]);
  }
}

// A block an expert.
__global__ void count_copies(View counts, View experts) {
  const std::int64_t expert = blockIdx.x;
  float mine = 0;
  for (std::int64_t i = threadIdx.x; i < experts.size(); i += blockDim.x) {
    mine += at(experts, i) == static_cast<float>(expert) ? 1.0F : 0.0F;
  }
  mine = block_sum(mine);
  if (threadIdx.x == 0) put(counts, expert, mine);
}

// A block an expert: its copies stand after those of the experts before, in the order of tokens.
__global__ void place_copies(View place_of_copy, View copy_of_place, View counts, View experts) {
  __shared__ int hits[kBlock];
  const std::int64_t expert = blockIdx.x;
  int next = 0;
  for (std::int64_t e = 0; e < expert; ++e) next += static_cast<int>(at(counts, e));
  for (std::int64_t first = 0; first < experts.size(); first += blockDim.x) {
    const std::int64_t copy = first + threadIdx.x;
    const bool hit = copy < experts.size() && at(experts, copy) == static_cast<float>(expert);
    hits[threadIdx.x] = hit ? 1 : 0;
    const int any = __syncthreads_or(hit);
    if (any == 0) continue;
    int before = 0, all = 0;
    for (unsigned t = 0; t < blockDim.x; ++t) {
      if (t < threadIdx.x) before += hits[t];
      all += hits[t];
    }
    if (hit) {
      integers(place_of_copy)[copy] = next + before;
      integers(copy_of_place)[next + before] = static_cast<int>(copy);
    }
    next += all;
    __syncthreads();
  }
}

__global__ void forget_copies(View place_of_copy) {
  for (std::int64_t i = global_thread(); i < place_of_copy.size(); i += all_threads()) {
    integers(place_of_copy)[i] = -1;
  }
}

// d logit of a chosen expert = g (dg − Σ g dg); the gate of a dropped copy has no gradient.
__global__ void route_gradient_kernel(View dlogits, View logits, View experts, View dgates,
                                      View place_of_copy) {
  const auto chosen = static_cast<int>(experts.columns);
  for (std::int64_t row = global_thread(); row < logits.rows; row += all_threads()) {
    float gates[kMostChosen], d[kMostChosen];
    gates_of(logits, experts, row, gates);
    float mean = 0;
    for (int j = 0; j < chosen; ++j) {
      const int place = integers(place_of_copy)[row * chosen + j];
      d[j] = place < 0 ? 0 : at(dgates, place);
      mean += gates[j] * d[j];
    }
    for (std::int64_t e = 0; e < logits.columns; ++e) put(dlogits, row * logits.columns + e, 0);
    for (int j = 0; j < chosen; ++j) {
      const std::int64_t expert = expert_of(at(experts, row * chosen + j));
      put(dlogits, row * logits.columns + expert, gates[j] * (d[j] - mean));
    }
  }
}

struct GatherRows {
  View out, in, index;
  int divisor;
  template <int N>
  __device__ void run(std::int64_t i) const {
    const std::int64_t row = integers(index)[i / out.columns] / divisor;
    store<N>(out, i, load<N>(in, row * in.columns + i % out.columns));
  }
};

struct ScatterRows {
  View out, in, index;
  template <int N>
  __device__ void run(std::int64_t i) const {
    const std::int64_t row = integers(index)[i / in.columns];
    store<N>(out, row * out.columns + i % in.columns, load<N>(in, i));
  }
};

struct Unpermute {
  View out, copies, place_of_copy, added[2];
  int adds;
  template <int N>
  __device__ void run(std::int64_t i) const {
    const std::int64_t row = i / out.columns;
    Pack<N> sum{};
    for (int a = 0; a < adds; ++a) {
      const Pack<N> more = load<N>(added[a], i);
      for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    }
    for (std::int64_t j = 0; j < place_of_copy.columns; ++j) {
      const std::int64_t place = integers(place_of_copy)[row * place_of_copy.columns + j];
      if (place < 0) continue;
      const Pack<N> more = load<N>(copies, place * copies.columns + i % out.columns);
      for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    }
    store<N>(out, i, sum);
  }
};

__global__ void expert_bias_kernel(View rows, View gates, View biases, View which) {
  for (std::int64_t i = global_thread(); i < rows.size(); i += all_threads()) {
    const std::int64_t row = i / rows.columns;
    const std::int64_t bias = integers(which)[row] * rows.columns + i % rows.columns;
    add(rows, i, at(gates, row) * at(biases, bias));
  }
}

// A thread an element of the biases.
__global__ void bias_gradient_kernel(View gradient, View gates, View dout, View which) {
  for (std::int64_t i = global_thread(); i < gradient.rows; i += all_threads()) {
    const std::int64_t expert = i / dout.columns;
    float sum = 0;
    for (std::int64_t row = 0; row < dout.rows; ++row) {
      if (integers(which)[row] != expert) continue;
      sum += at(gates, row) * at(dout, row * dout.columns + i % dout.columns);
    }
    add(gradient, i, sum);
  }
}

// A block a row.
__global__ void gate_gradient_kernel(View gradient, View biases, View dout, View which) {
  for (std::int64_t row = blockIdx.x; row < dout.rows; row += gridDim.x) {
    float sum = 0;
    for (std::int64_t c = threadIdx.x; c < dout.columns; c += blockDim.x) {
      sum += at(dout, row * dout.columns + c) * at(biases, integers(which)[row] * dout.columns + c);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) add(gradient, row, sum);
  }
}

}  // namespace

void route(const Queue& queue, const View& gates, const View& experts, const View& logits,
           const View* correction) {
  if (gates.columns > kMostChosen) {
    queue.status.fail("route: at most 64 experts a token");
    return;
  }
  start(queue, "route", route_kernel, dim3(blocks_for(logits.rows)), kBlock, 0, gates, experts,
        logits, correction == nullptr ? View{} : *correction, correction != nullptr);
}

void order_copies(const Queue& queue, const View& place_of_copy, const View& copy_of_place,
                  const View& counts, const View& experts) {
  const auto blocks = dim3(static_cast<unsigned>(counts.size()));
  start(queue, "forget_copies", forget_copies, dim3(blocks_for(place_of_copy.size())), kBlock, 0,
        place_of_copy);
  start(queue, "count_copies", count_copies, blocks, kBlock, 0, counts, experts);
  start(queue, "place_copies", place_copies, blocks, kBlock, 0, place_of_copy, copy_of_place,
        counts, experts);
}

void route_gradient(const Queue& queue, const View& dlogits, const View& logits,
                    const View& experts, const View& dgates, const View& place_of_copy) {
  start(queue, "route_gradient", route_gradient_kernel, dim3(blocks_for(logits.rows)), kBlock, 0,
        dlogits, logits, experts, dgates, place_of_copy);
}

void gather_rows(const Queue& queue, const View& out, const View& in, const View& index,
                 int divisor) {
  each(queue, "gather_rows", GatherRows{out, in, index, divisor}, out.size(), out.columns);
}

void scatter_rows(const Queue& queue, const View& out, const View& in, const View& index) {
  each(queue, "scatter_rows", ScatterRows{out, in, index}, in.size(), in.columns);
}

void unpermute(const Queue& queue, const View& out, const View& copies, const View& place_of_copy,
               const std::vector<View>& added) {
  Unpermute body{.out = out,
                 .copies = copies,
                 .place_of_copy = place_of_copy,
                 .added = {},
                 .adds = static_cast<int>(added.size())};
  if (added.size() > 2) {
    queue.status.fail("unpermute: adds two matrices at most");
    return;
  }
  for (std::size_t i = 0; i < added.size(); ++i) body.added[i] = added[i];
  each(queue, "unpermute", body, out.size(), out.columns);
}

void expert_bias(const Queue& queue, const View& rows, const View& gates, const View& biases,
                 const View& which) {
  start(queue, "expert_bias", expert_bias_kernel, dim3(blocks_for(rows.size())), kBlock, 0, rows,
        gates, biases, which);
}

void expert_bias_gradient(const Queue& queue, const View& bias_gradient, const View& gate_gradient,
                          const View& gates, const View& biases, const View& dout,
                          const View& which) {
  start(queue, "bias_gradient", bias_gradient_kernel, dim3(blocks_for(bias_gradient.rows)), kBlock,
        0, bias_gradient, gates, dout, which);
  start(queue, "gate_gradient", gate_gradient_kernel,
        dim3(static_cast<unsigned>(dout.rows < 65535 ? dout.rows : 65535)), kBlock, 0,
        gate_gradient, biases, dout, which);
}

}  // namespace trainyard
