// Kernels that work element by element: residuals, dropout, activations, sums.
#include "executor/cuda/kernels/places.h"
#include "executor/cuda/kernels/rows.h"

namespace trainyard {
namespace {

struct Fill {
  View out;
  float number;
  template <int N>
  __device__ void run(std::int64_t i) const {
    Pack<N> pack;
    for (int k = 0; k < N; ++k) pack.x[k] = number;
    store<N>(out, i, pack);
  }
};

struct FillWithNoise {
  View out;
  std::uint64_t message;
  template <int N>
  __device__ void run(std::int64_t i) const {
    Pack<N> pack;
    for (int k = 0; k < N; ++k) {
      pack.x[k] = message_noise(message, static_cast<std::uint64_t>(i + k));
    }
    store<N>(out, i, pack);
  }
};

struct Convert {
  View out, in;
  template <int N>
  __device__ void run(std::int64_t i) const {
    store<N>(out, i, load<N>(in, i));
  }
};

struct Add {
  View out, a, b;
  template <int N>
  __device__ void run(std::int64_t i) const {
    Pack<N> sum = load<N>(a, i);
    const Pack<N> other = load<N>(b, i);
    for (int k = 0; k < N; ++k) sum.x[k] += other.x[k];
    store<N>(out, i, sum);
  }
};

struct BiasedResidual {
  View out, stream, branch, bias;
  template <int N>
  __device__ void run(const Spot& at) const {
    const Raw stream_raw = fetch_pack<N>(stream, at.i), branch_raw = fetch_pack<N>(branch, at.i);
    const Pack<N> more = load<N>(bias, at.column);
    Pack<N> sum = unpacked<N>(branch, at.i, branch_raw);
    for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    const Pack<N> a = unpacked<N>(stream, at.i, stream_raw);
    for (int k = 0; k < N; ++k) sum.x[k] += a.x[k];
    store<N>(out, at.i, sum);
  }
};

// ---- Dropout -----------------------------------------------------------------------------------

// out = stream + (branch + bias) · mask · kept
struct DropoutOperands {
  View out, mask, branch, bias, stream;  // bias and stream may have no data
  Dropout dropout;
  std::uint32_t threshold;
};

template <typename Type, int N>
__device__ void drop_pack(const DropoutOperands& of, std::uint64_t row, unsigned column,
                          std::int64_t i, const Raw& branch, const Raw& stream) {
  Pack<N> y = unpacked<N>(Type::of(of.branch), i, branch);
  if (of.bias.data != nullptr) {
    const Pack<N> more = load<N>(Type::of(of.bias), column);
    for (int k = 0; k < N; ++k) y.x[k] += more.x[k];
  }
  unsigned char kept[N];
  draw(kept, row, column, of.threshold);
  put_part(OneType<ElementType::u8>::of(of.mask), i, kept);
  for (int k = 0; k < N; ++k) y.x[k] *= kept[k] != 0 ? of.dropout.kept : 0.0F;
  if (of.stream.data != nullptr) {
    const Pack<N> more = unpacked<N>(Type::of(of.stream), i, stream);
    for (int k = 0; k < N; ++k) y.x[k] += more.x[k];
  }
  store<N>(Type::of(of.out), i, y);
}

constexpr int kDropped = 4;  // packs that a thread fetches at once

// A block has `block_rows` rows, at most one for each of its threads. The hash that a row's draws
// share is computed once, while the first numbers are being fetched.
template <typename Type, int N>
__global__ void __launch_bounds__(kBlock) dropout_kernel(DropoutOperands of, int block_rows) {
  auto* common = reinterpret_cast<std::uint64_t*>(shared_memory());
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * block_rows;
  const std::int64_t left = of.out.rows - first, from = first * of.out.columns;
  const auto rows = static_cast<unsigned>(block_rows < left ? block_rows : left);
  const auto packs = static_cast<unsigned>(of.out.columns / N);
  for (unsigned begin = 0; begin < rows * packs; begin += kDropped * kBlock) {
    Raw branch[kDropped], stream[kDropped];
    each_place<kDropped>(begin, rows * packs, [&](int k, unsigned n) {
      const std::int64_t i = from + std::int64_t{n} * N;
      branch[k] = fetch_pack<N>(Type::of(of.branch), i);
      if (of.stream.data != nullptr) stream[k] = fetch_pack<N>(Type::of(of.stream), i);
    });
    if (begin == 0) {
      if (threadIdx.x < rows) common[threadIdx.x] = dropout_row(of.dropout, first + threadIdx.x);
      __syncthreads();
    }
    each_place<kDropped>(begin, rows * packs, [&](int k, unsigned n) {
      const unsigned row = n / packs;
      drop_pack<Type, N>(of, common[row], (n - row * packs) * N, from + std::int64_t{n} * N,
                         branch[k], stream[k]);
    });
  }
}

struct DropGradient {
  View out, in, mask;
  float kept;
  template <int N>
  __device__ void run(std::int64_t i) const {
    Pack<N> x = load<N>(in, i);
    const Pack<N> keep = load<N>(mask, i);
    for (int k = 0; k < N; ++k) x.x[k] *= keep.x[k] * kept;
    store<N>(out, i, x);
  }
};

// ---- Activations -------------------------------------------------------------------------------

// Uses the fast exponential and quotient: their errors are far below what is stored, and the exact
// ones would take longer than the memory traffic.
__device__ float sigmoid(float x) { return quotient(1, 1 + exponential(-x)); }

// Distribution and density of the normal distribution, within 1e-7: Abramowitz & Stegun, Handbook
// of Mathematical Functions, 7.1.26. Both need the same power.
struct Normal {
  float distribution, density;
};
__device__ Normal normal_at(float x) {
  const float power = exponential(x * (x * -0.5F));
  const float t = quotient(1, 1 + 0.3275911F * 0.70710678118654752F * fabsf(x));
  const float tail =
      0.5F * power * t *
      (0.254829592F +
       t * (-0.284496736F + t * (1.421413741F + t * (-1.453152027F + t * 1.061405429F))));
  return {x < 0 ? tail : 1 - tail, power * 0.39894228040143268F};
}

// The activation of N elements of a row; with `gated`, gate and up lie side by side in the row.
template <int N>
__device__ Pack<N> activated(const View& in, std::int64_t row, std::int64_t column, bool gated) {
  const std::int64_t place = row * in.columns + column;
  if (!gated) {
    Pack<N> x = load<N>(in, place);
    for (int k = 0; k < N; ++k) x.x[k] *= normal_at(x.x[k]).distribution;
    return x;
  }
  const std::int64_t other = place + in.columns / 2;
  const Raw gate_raw = fetch_pack<N>(in, place), up_raw = fetch_pack<N>(in, other);
  Pack<N> gate = unpacked<N>(in, place, gate_raw);
  const Pack<N> up = unpacked<N>(in, other, up_raw);
  for (int k = 0; k < N; ++k) gate.x[k] *= sigmoid(gate.x[k]) * up.x[k];
  return gate;
}

template <typename Type>
struct Activation {
  View out, in, row_gates;
  bool has_gates, gated;
  template <int N>
  __device__ void run(const Spot& spot) const {
    Pack<N> y = activated<N>(Type::of(in), spot.row, spot.column, gated);
    if (has_gates) {
      const float gate = at(row_gates, spot.row);
      for (int k = 0; k < N; ++k) y.x[k] *= gate;
    }
    store<N>(Type::of(out), spot.i, y);
  }
};

template <typename Type>
struct ActivationGradient {
  View any_din, any_in, any_dout, row_gates;
  bool has_gates, gated;
  template <int N>
  __device__ void run(const Spot& spot) const {
    const View din = Type::of(any_din), in = Type::of(any_in), dout = Type::of(any_dout);
    const std::int64_t place = spot.row * in.columns + spot.column;
    const std::int64_t other = place + (gated ? in.columns / 2 : 0);
    const Raw dout_raw = fetch_pack<N>(dout, spot.i), gate_raw = fetch_pack<N>(in, place),
              up_raw = fetch_pack<N>(in, other);
    Pack<N> dy = unpacked<N>(dout, spot.i, dout_raw);
    if (has_gates) {
      const float gate = at(row_gates, spot.row);
      for (int k = 0; k < N; ++k) dy.x[k] *= gate;
    }
    const Pack<N> gate = unpacked<N>(in, place, gate_raw);
    if (!gated) {
      for (int k = 0; k < N; ++k) {
        const Normal normal = normal_at(gate.x[k]);
        dy.x[k] *= normal.distribution + gate.x[k] * normal.density;
      }
      store<N>(din, spot.i, dy);
      return;
    }
    const Pack<N> up = unpacked<N>(in, other, up_raw);
    Pack<N> dgate, dup;
    for (int k = 0; k < N; ++k) {
      const float s = sigmoid(gate.x[k]);
      dgate.x[k] = dy.x[k] * up.x[k] * s * (1 + gate.x[k] * (1 - s));
      dup.x[k] = dy.x[k] * gate.x[k] * s;
    }
    store<N>(din, place, dgate);
    store<N>(din, other, dup);
  }
};

// The gradient of a row's gate: Σ output gradient · what the gate multiplies. A team for each row.
template <int N>
__global__ void row_gate_gradient(View gradient, View in, View dout, bool gated, int team) {
  for_rows(dout.rows, team, [&](std::int64_t row) {
    float sum = 0;
    RowShare<N, 0>{row < dout.rows ? dout.columns : 0, team}.each([&](int, std::int64_t c) {
      const std::int64_t i = row * dout.columns + c;
      const Pack<N> dy = load<N>(dout, i), y = activated<N>(in, row, c, gated);
      for (int k = 0; k < N; ++k) sum += dy.x[k] * y.x[k];
    });
    sum = team_sum(sum, team);
    if (threadIdx.x % static_cast<unsigned>(team) == 0 && row < dout.rows) put(gradient, row, sum);
  });
}

// ---- Some columns of every row; an element is one of those ---------------------------------

struct AddRow {
  View rows, row;
  std::int64_t first;
  template <int N>
  __device__ void run(const Spot& at) const {
    const std::int64_t to = at.row * rows.columns + first + at.column;
    Pack<N> sum = load<N>(rows, to);
    const Pack<N> more = load<N>(row, at.column);
    for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    store<N>(rows, to, sum);
  }
};

struct CopyColumns {
  Columns to, from;
  template <int N>
  __device__ void run(const Spot& at) const {
    store<N>(to.of, at.row * to.of.columns + to.first + at.column,
             load<N>(from.of, at.row * from.of.columns + from.first + at.column));
  }
};

struct AddColumns {
  Columns to;
  View what;
  template <int N>
  __device__ void run(const Spot& at) const {
    const std::int64_t place = at.row * to.of.columns + to.first + at.column;
    Pack<N> sum = load<N>(to.of, place);
    const Pack<N> more = load<N>(what, at.i);
    for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    store<N>(to.of, place, sum);
  }
};

// Whether packs of eight are aligned in all of these columns.
bool begin_even(std::initializer_list<Columns> columns) {
  for (const Columns& of : columns) {
    if (of.first % 8 != 0 || of.of.columns % 8 != 0 || even_place({&of.of}) != 0) return false;
  }
  return true;
}

// Moves numbers of each token and head between the order of tokens and the order of heads.
struct ByHead {
  View heads, tokens;  // [sequences · heads × length], [sequences · length × heads]
  std::int64_t length;
  bool back;
  template <int N>
  __device__ void run(std::int64_t i) const {
    static_assert(N == 1);
    const std::int64_t row = i / tokens.columns, head = i % tokens.columns;
    const std::int64_t sequence = row / length;
    const std::int64_t there = (sequence * tokens.columns + head) * length + row % length;
    if (back) {
      put(tokens, i, at(heads, there));
    } else {
      put(heads, there, at(tokens, i));
    }
  }
};

void exchange_heads(const Queue& queue, const ByHead& body) {
  start(queue, "by_head", each_kernel<1, ByHead>, dim3(blocks_for(body.tokens.size())), kBlock, 0,
        body, Stretch{0, body.tokens.size(), 0});
}

View or_none(const View* view) { return view == nullptr ? View{} : *view; }

void begin_dropout(const Queue& queue, DropoutOperands of) {
  const std::int64_t rows = of.out.rows, columns = of.out.columns;
  if (rows == 0 || columns == 0) return;
  of.threshold = dropout_threshold(of.dropout.rate);
  const View& bias = of.bias.data == nullptr ? of.out : of.bias;
  const View& stream = of.stream.data == nullptr ? of.out : of.stream;
  const bool even =
      columns % 8 == 0 && even_place({&of.out, &of.mask, &of.branch, &bias, &stream}) == 0;
  const View* const all[] = {&of.out, &of.branch, &bias, &stream};
  with_packs(even, all, [&](auto type, auto of_pack) {
    const std::int64_t of_block = rows_of_block(columns / of_pack, kDropped);
    start(queue, "dropout", dropout_kernel<decltype(type), of_pack>,
          dim3(static_cast<unsigned>((rows + of_block - 1) / of_block)), kBlock,
          static_cast<std::size_t>(of_block) * sizeof(std::uint64_t), of,
          static_cast<int>(of_block));
  });
}

}  // namespace

void fill(const Queue& queue, const View& out, float number) {
  // Zeros are bytes of zeros in every type.
  if (number == 0 && out.bytes() > 0) {
    return queue.status.check(cudaMemsetAsync(out.data, 0, out.bytes(), queue.stream),
                              "cudaMemsetAsync");
  }
  each_alike(queue, "fill", Fill{out, number}, out.size(), {&out});
}

void fill_with_noise(const Queue& queue, const View& out, std::uint64_t message) {
  each_alike(queue, "fill_with_noise", FillWithNoise{out, message}, out.size(), {&out});
}

void convert(const Queue& queue, const View& out, const View& in) {
  if (out.type == in.type) {
    // Either may lie in the host's memory, which the addresses tell.
    queue.status.check(
        cudaMemcpyAsync(out.data, in.data, in.bytes(), cudaMemcpyDefault, queue.stream),
        "cudaMemcpyAsync");
    if (in.scale_bytes() == 0) return;
    queue.status.check(cudaMemcpyAsync(out.scales.of, in.scales.of, in.scale_bytes(),
                                       cudaMemcpyDefault, queue.stream),
                       "cudaMemcpyAsync");
    return;
  }
  each_alike(queue, "convert", Convert{out, in}, in.size(), {&out, &in});
}

void add_to(const Queue& queue, const View& into, const View& what) {
  each_alike(queue, "add_to", Add{into, into, what}, what.size(), {&into, &what});
}

void add(const Queue& queue, const View& out, const View& a, const View& b) {
  each_alike(queue, "add", Add{out, a, b}, out.size(), {&out, &a, &b});
}

void residual(const Queue& queue, const View& out, const View& stream, const View& branch,
              const View* bias, const View* mask, const Dropout& dropout) {
  if (mask != nullptr) {
    return begin_dropout(queue, {out, *mask, branch, or_none(bias), stream, dropout, {}});
  }
  if (bias == nullptr) return add(queue, out, stream, branch);
  each(queue, "residual", BiasedResidual{out, stream, branch, *bias}, out.rows, out.columns);
}

void drop(const Queue& queue, const View& out, const View& mask, const View& in,
          const Dropout& dropout) {
  begin_dropout(queue, {out, mask, in, {}, {}, dropout, {}});
}

void drop_gradient(const Queue& queue, const View& out, const View& in, const View& mask,
                   float kept) {
  each_alike(queue, "drop_gradient", DropGradient{out, in, mask, kept}, in.size(),
             {&out, &in, &mask});
}

void activation(const Queue& queue, const View& out, const View& in, const View* row_gates,
                bool gated) {
  const auto begin = [&](auto type) {
    const Activation<decltype(type)> body{out, in, or_none(row_gates), row_gates != nullptr, gated};
    each(queue, "activation", body, out.rows, out.columns);
    return true;
  };
  const View* const all[] = {&out, &in};
  if (!with_one_type(all, begin)) begin(AnyType{});
}

void activation_gradient(const Queue& queue, const View& din, const View& in, const View& dout,
                         const View* row_gates, const View* row_gates_gradient, bool gated) {
  if (row_gates_gradient != nullptr) {
    const RowTeams teams = row_teams(dout.columns);
    start(queue, "row_gate_gradient",
          dout.columns % 8 == 0 ? row_gate_gradient<8> : row_gate_gradient<1>,
          dim3(row_blocks(dout.rows, teams)), teams.threads, 0, *row_gates_gradient, in, dout,
          gated, teams.team);
  }
  const auto begin = [&](auto type) {
    const ActivationGradient<decltype(type)> body{
        din, in, dout, or_none(row_gates), row_gates != nullptr, gated};
    each(queue, "activation_gradient", body, dout.rows, dout.columns);
    return true;
  };
  const View* const all[] = {&din, &in, &dout};
  if (!with_one_type(all, begin)) begin(AnyType{});
}

void add_row(const Queue& queue, const View& rows, std::int64_t first_column, const View& row) {
  each(queue, "add_row", AddRow{rows, row, first_column}, rows.rows, row.rows,
       begin_even({{rows, first_column}, {row.shaped(1, row.size()), 0}}));
}

void copy_columns(const Queue& queue, const Columns& to, const Columns& from, std::int64_t width) {
  each(queue, "copy_columns", CopyColumns{to, from}, to.of.rows, width, begin_even({to, from}));
}

void add_columns(const Queue& queue, const Columns& to, const View& what) {
  each(queue, "add_columns", AddColumns{to, what}, what.rows, what.columns,
       begin_even({to, {what, 0}}));
}

void to_heads(const Queue& queue, const View& by_head, const View& by_token, std::int64_t length) {
  exchange_heads(queue, {by_head, by_token, length, false});
}

void from_heads(const Queue& queue, const View& by_token, const View& by_head,
                std::int64_t length) {
  exchange_heads(queue, {by_head, by_token, length, true});
}

}  // namespace trainyard
