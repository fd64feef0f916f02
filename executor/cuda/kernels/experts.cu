// Routing and the order of the copies of tokens. A dropped copy carries −1 − expert. Orders are
// stable, so that every rank and the host come to the same one.
#include "executor/cuda/kernels/rows.h"

namespace trainyard {
namespace {

__device__ std::int64_t expert_of(float mark) {
  return static_cast<std::int64_t>(mark < 0 ? -1 - mark : mark);
}

__device__ int* integers(const View& view) { return static_cast<int*>(view.data); }

// The gates of a token: softmax over the logits of its experts.
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

constexpr int kWarp = 32;

struct Choice {
  float score = -INFINITY;
  std::int64_t expert = -1;  // none
  // Of equal scores the first expert is better.
  __device__ bool is_before(const Choice& other) const {
    if (expert < 0 || other.expert < 0) return expert >= 0;
    return score > other.score || (score == other.score && expert < other.expert);
  }
};

__device__ Choice best_of_warp(Choice mine) {
  for (int away = kWarp / 2; away > 0; away /= 2) {
    const Choice other{
        __shfl_xor_sync(~0u, mine.score, away),
        static_cast<std::int64_t>(__shfl_xor_sync(~0u, static_cast<float>(mine.expert), away))};
    if (other.is_before(mine)) mine = other;
  }
  return mine;
}

// The score by which an expert is chosen. NaN comes last, so that there is an expert for every
// copy; such a token has NaN gates, and the loss becomes NaN.
__device__ float score_of(const View& logits, const View& correction, bool corrects,
                          std::int64_t row, std::int64_t expert) {
  const float score =
      at(logits, row * logits.columns + expert) + (corrects ? at(correction, expert) : 0);
  return score == score ? score : -INFINITY;
}

// A warp for each token: its best experts; of equal scores the first one comes first.
__global__ void route_kernel(View gates, View experts, View logits, View correction,
                             bool corrects) {
  const auto chosen = static_cast<int>(gates.columns);
  const std::int64_t lane = threadIdx.x % kWarp;
  for_rows(logits.rows, kWarp, [&](std::int64_t row) {
    const bool inside = row < logits.rows;
    Choice last{INFINITY, -1};
    for (int j = 0; j < chosen; ++j) {
      Choice best;
      for (std::int64_t e = lane; inside && e < logits.columns; e += kWarp) {
        const Choice of{score_of(logits, correction, corrects, row, e), e};
        const bool left =
            of.score < last.score || (of.score == last.score && of.expert > last.expert);
        if (left && of.is_before(best)) best = of;
      }
      best = last = best_of_warp(best);
      if (inside && lane == 0) put(experts, row * chosen + j, static_cast<float>(best.expert));
    }
    if (!inside || lane > 0) return;
    float all[kMostChosen];
    gates_of(logits, experts, row, all);
    for (int j = 0; j < chosen; ++j) put(gates, row * chosen + j, all[j]);
  });
}

// A block for each expert.
__global__ void count_copies(View counts, View experts) {
  const std::int64_t expert = blockIdx.x;
  float mine = 0;
  for (std::int64_t i = threadIdx.x; i < experts.size(); i += blockDim.x) {
    mine += at(experts, i) == static_cast<float>(expert) ? 1.0F : 0.0F;
  }
  mine = block_sum(mine);
  if (threadIdx.x == 0) put(counts, expert, mine);
}

// How many threads of a block have a hit, in all and before this one.
struct Hits {
  int before = 0, all = 0;
};
__device__ Hits hits_in_block(bool hit) {
  __shared__ int of_warps[kBlock / kWarp];
  const unsigned hits = __ballot_sync(~0u, hit);
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = __popc(hits);
  __syncthreads();
  Hits found{__popc(hits & ((1U << threadIdx.x % kWarp) - 1)), 0};
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) {
    if (warp < threadIdx.x / kWarp) found.before += of_warps[warp];
    found.all += of_warps[warp];
  }
  __syncthreads();  // before the next ones are counted
  return found;
}

// A block for each expert, whose copies are placed after those of the experts before it, in the
// order of tokens.
__global__ void place_copies(View place_of_copy, View copy_of_place, View counts, View experts) {
  const std::int64_t expert = blockIdx.x;
  float before = 0;
  for (std::int64_t e = threadIdx.x; e < expert; e += blockDim.x) before += at(counts, e);
  auto next = static_cast<int>(block_sum(before));
  for (std::int64_t first = 0; first < experts.size(); first += blockDim.x) {
    const std::int64_t copy = first + threadIdx.x;
    const bool hit = copy < experts.size() && at(experts, copy) == static_cast<float>(expert);
    const Hits hits = hits_in_block(hit);
    if (hit) {
      integers(place_of_copy)[copy] = next + hits.before;
      integers(copy_of_place)[next + hits.before] = static_cast<int>(copy);
    }
    next += hits.all;
  }
}

__global__ void forget_copies(View place_of_copy) {
  for (std::int64_t i = global_thread(); i < place_of_copy.size(); i += all_threads()) {
    integers(place_of_copy)[i] = -1;
  }
}

// d logit of a chosen expert = g (dg − Σ g dg); the gate of a dropped copy has no gradient. A warp
// for each token.
__global__ void route_gradient_kernel(View dlogits, View logits, View experts, View dgates,
                                      View place_of_copy) {
  const auto chosen = static_cast<int>(experts.columns);
  const std::int64_t lane = threadIdx.x % kWarp;
  for_rows(logits.rows, kWarp, [&](std::int64_t row) {
    const bool inside = row < logits.rows;
    for (std::int64_t e = lane; inside && e < logits.columns; e += kWarp) {
      put(dlogits, row * logits.columns + e, 0);
    }
    __syncwarp();  // before lane 0 writes over the zeros
    if (!inside || lane > 0) return;
    float gates[kMostChosen], d[kMostChosen];
    gates_of(logits, experts, row, gates);
    float mean = 0;
    for (int j = 0; j < chosen; ++j) {
      const int place = integers(place_of_copy)[row * chosen + j];
      d[j] = place < 0 ? 0 : at(dgates, place);
      mean += gates[j] * d[j];
    }
    for (int j = 0; j < chosen; ++j) {
      const std::int64_t expert = expert_of(at(experts, row * chosen + j));
      put(dlogits, row * logits.columns + expert, gates[j] * (d[j] - mean));
    }
  });
}

struct SharedRow {
  const int* index;
  int divisor;
  __device__ std::int64_t operator()(std::int64_t row) const { return index[row] / divisor; }
};

struct ScatterRows {
  View out, in, index;
  template <int N>
  __device__ void run(const Spot& at) const {
    const std::int64_t row = integers(index)[at.row];
    store<N>(out, row * out.columns + at.column, load<N>(in, at.i));
  }
};

template <typename Type>
struct Unpermute {
  View out, copies, place_of_copy, added[2];
  int adds;
  template <int N>
  __device__ void run(const Spot& at) const {
    Pack<N> sum{};
    for (int a = 0; a < adds; ++a) {
      const Pack<N> more = load<N>(Type::of(added[a]), at.i);
      for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    }
    const auto chosen = static_cast<int>(place_of_copy.columns);
    const int* places = integers(place_of_copy) + at.row * chosen;
    for (int first = 0; first < chosen; first += kUnderWay) {
      std::int64_t from[kUnderWay];  // first element of each; negative: dropped
      Raw raw[kUnderWay];
#pragma unroll
      for (int j = 0; j < kUnderWay; ++j) {
        const int place = first + j < chosen ? places[first + j] : -1;
        from[j] = place * copies.columns + at.column;
      }
#pragma unroll
      for (int j = 0; j < kUnderWay; ++j) {
        if (from[j] >= 0) raw[j] = fetch_pack<N>(Type::of(copies), from[j]);
      }
#pragma unroll
      for (int j = 0; j < kUnderWay; ++j) {
        if (from[j] < 0) continue;
        const Pack<N> more = unpacked<N>(Type::of(copies), from[j], raw[j]);
        for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
      }
    }
    store<N>(Type::of(out), at.i, sum);
  }
};

struct ExpertBias {
  View rows, gates, biases, which;
  template <int N>
  __device__ void run(const Spot& spot) const {
    const std::int64_t i = spot.i;
    const std::int64_t bias = integers(which)[spot.row] * rows.columns + spot.column;
    const float gate = at(gates, spot.row);
    Pack<N> sum = load<N>(rows, i);
    const Pack<N> more = load<N>(biases, bias);
    for (int k = 0; k < N; ++k) sum.x[k] += gate * more.x[k];
    store<N>(rows, i, sum);
  }
};

// Block (x, y) sums the biases' gradients of expert y, N columns for each lane; its warps take
// turns at the rows.
template <int N>
__global__ void bias_gradient_kernel(View gradient, View gates, View dout, View which) {
  const auto expert = static_cast<int>(blockIdx.y);
  const auto value = [&](std::int64_t row, std::int64_t i) {
    if (integers(which)[row] != expert) return Pack<N>{};
    Pack<N> dy = load<N>(dout, i);
    const float gate = at(gates, row);
    for (int k = 0; k < N; ++k) dy.x[k] *= gate;
    return dy;
  };
  sum_rows<N>(dout, 0, dout.rows, value, [&](std::int64_t column, const Pack<N>& sum) {
    const std::int64_t to = expert * dout.columns + column;
    Pack<N> all = load<N>(gradient, to);
    for (int k = 0; k < N; ++k) all.x[k] += sum.x[k];
    store<N>(gradient, to, all);
  });
}

// A team for each row.
template <int N>
__global__ void gate_gradient_kernel(View gradient, View biases, View dout, View which, int team) {
  for_rows(dout.rows, team, [&](std::int64_t row) {
    const bool inside = row < dout.rows;
    const std::int64_t bias = inside ? integers(which)[row] * dout.columns : 0;
    float sum = 0;
    RowShare<N, 0>{inside ? dout.columns : 0, team}.each([&](int, std::int64_t c) {
      const Pack<N> dy = load<N>(dout, row * dout.columns + c), b = load<N>(biases, bias + c);
      for (int k = 0; k < N; ++k) sum += dy.x[k] * b.x[k];
    });
    sum = team_sum(sum, team);
    if (inside && threadIdx.x % static_cast<unsigned>(team) == 0) add(gradient, row, sum);
  });
}

}  // namespace

void route(const Queue& queue, const View& gates, const View& experts, const View& logits,
           const View* correction) {
  if (gates.columns > kMostChosen) {
    queue.status.fail("route: at most 64 experts a token");
    return;
  }
  start(queue, "route", route_kernel, dim3(blocks_for(logits.rows * kWarp)), kBlock, 0, gates,
        experts, logits, correction == nullptr ? View{} : *correction, correction != nullptr);
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
  start(queue, "route_gradient", route_gradient_kernel, dim3(blocks_for(logits.rows * kWarp)),
        kBlock, 0, dlogits, logits, experts, dgates, place_of_copy);
}

void gather_rows(const Queue& queue, const View& out, const View& in, const View& index,
                 int divisor) {
  pick_rows(queue, "gather_rows", out, in, SharedRow{static_cast<const int*>(index.data), divisor});
}

void scatter_rows(const Queue& queue, const View& out, const View& in, const View& index) {
  each(queue, "scatter_rows", ScatterRows{out, in, index}, in.rows, in.columns);
}

void unpermute(const Queue& queue, const View& out, const View& copies, const View& place_of_copy,
               const std::vector<View>& added) {
  if (added.size() > 2) {
    queue.status.fail("unpermute: adds two matrices at most");
    return;
  }
  const View first = added.empty() ? out : added.front(), last = added.empty() ? out : added.back();
  const auto begin = [&](auto type) {
    each(queue, "unpermute",
         Unpermute<decltype(type)>{
             out, copies, place_of_copy, {first, last}, static_cast<int>(added.size())},
         out.rows, out.columns);
    return true;
  };
  const View* const all[] = {&out, &copies, &first, &last};
  if (!with_one_type(all, begin)) begin(AnyType{});
}

void expert_bias(const Queue& queue, const View& rows, const View& gates, const View& biases,
                 const View& which) {
  each(queue, "expert_bias", ExpertBias{rows, gates, biases, which}, rows.rows, rows.columns);
}

void expert_bias_gradient(const Queue& queue, const View& bias_gradient, const View& gate_gradient,
                          const View& gates, const View& biases, const View& dout,
                          const View& which) {
  const bool even = dout.columns % 8 == 0;
  const dim3 blocks(even ? Strips::across<8>(dout) : Strips::across<1>(dout),
                    static_cast<unsigned>(bias_gradient.size() / dout.columns));
  start(queue, "bias_gradient", even ? bias_gradient_kernel<8> : bias_gradient_kernel<1>, blocks,
        kBlock, 0, bias_gradient, gates, dout, which);
  const RowTeams teams = row_teams(dout.columns);
  start(queue, "gate_gradient", even ? gate_gradient_kernel<8> : gate_gradient_kernel<1>,
        dim3(row_blocks(dout.rows, teams)), teams.threads, 0, gate_gradient, biases, dout, which,
        teams.team);
}

}  // namespace trainyard
