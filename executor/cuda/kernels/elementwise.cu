// What is computed element by element: residuals, dropout, activations, sums.
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

struct Residual {
  View out, stream, branch, bias, mask;
  bool has_bias, drops;
  Dropout dropout;
  template <int N>
  __device__ void run(std::int64_t i) const {
    Pack<N> b = load<N>(branch, i);
    const std::int64_t row = i / branch.columns;
    const std::int64_t column = i % branch.columns;
    if (has_bias) {
      const Pack<N> more = load<N>(bias, column);
      for (int k = 0; k < N; ++k) b.x[k] += more.x[k];
    }
    if (drops) {
      Pack<N> keep;
      for (int k = 0; k < N; ++k) keep.x[k] = keeps(dropout, row, column + k) ? 1.0F : 0.0F;
      store<N>(mask, i, keep);
      for (int k = 0; k < N; ++k) b.x[k] *= keep.x[k] * dropout.kept;
    }
    const Pack<N> a = load<N>(stream, i);
    for (int k = 0; k < N; ++k) b.x[k] += a.x[k];
    store<N>(out, i, b);
  }
};

struct Drop {
  View out, mask, in;
  Dropout dropout;
  template <int N>
  __device__ void run(std::int64_t i) const {
    Pack<N> x = load<N>(in, i);
    Pack<N> keep;
    for (int k = 0; k < N; ++k) {
      keep.x[k] = keeps(dropout, i / in.columns, i % in.columns + k) ? 1.0F : 0.0F;
      x.x[k] *= keep.x[k] * dropout.kept;
    }
    store<N>(mask, i, keep);
    store<N>(out, i, x);
  }
};

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

__device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }
__device__ float normal_distribution(float x) { return erfcf(-x * 0.70710678118654752F) / 2; }
__device__ float normal_density(float x) { return expf(-x * x / 2) * 0.39894228040143268F; }

// Where element i of the result is in the input: gate and up side by side.
__device__ std::int64_t gate_at(const View& in, std::int64_t i) {
  const std::int64_t width = in.columns / 2;
  return i / width * in.columns + i % width;
}

template <int N>
__device__ Pack<N> activated(const View& in, std::int64_t i, bool gated) {
  if (!gated) {
    Pack<N> x = load<N>(in, i);
    for (int k = 0; k < N; ++k) x.x[k] *= normal_distribution(x.x[k]);
    return x;
  }
  const std::int64_t place = gate_at(in, i);
  Pack<N> gate = load<N>(in, place);
  const Pack<N> up = load<N>(in, place + in.columns / 2);
  for (int k = 0; k < N; ++k) gate.x[k] *= sigmoid(gate.x[k]) * up.x[k];
  return gate;
}

struct Activation {
  View out, in, row_gates;
  bool has_gates, gated;
  template <int N>
  __device__ void run(std::int64_t i) const {
    Pack<N> y = activated<N>(in, i, gated);
    if (has_gates) {
      const float gate = at(row_gates, i / out.columns);
      for (int k = 0; k < N; ++k) y.x[k] *= gate;
    }
    store<N>(out, i, y);
  }
};

struct ActivationGradient {
  View din, in, dout, row_gates;
  bool has_gates, gated;
  template <int N>
  __device__ void run(std::int64_t i) const {
    Pack<N> dy = load<N>(dout, i);
    if (has_gates) {
      const float gate = at(row_gates, i / dout.columns);
      for (int k = 0; k < N; ++k) dy.x[k] *= gate;
    }
    if (!gated) {
      const Pack<N> x = load<N>(in, i);
      for (int k = 0; k < N; ++k) {
        dy.x[k] *= normal_distribution(x.x[k]) + x.x[k] * normal_density(x.x[k]);
      }
      store<N>(din, i, dy);
      return;
    }
    const std::int64_t place = gate_at(in, i);
    const Pack<N> gate = load<N>(in, place);
    const Pack<N> up = load<N>(in, place + in.columns / 2);
    Pack<N> dgate, dup;
    for (int k = 0; k < N; ++k) {
      const float s = sigmoid(gate.x[k]);
      dgate.x[k] = dy.x[k] * up.x[k] * s * (1 + gate.x[k] * (1 - s));
      dup.x[k] = dy.x[k] * gate.x[k] * s;
    }
    store<N>(din, place, dgate);
    store<N>(din, place + in.columns / 2, dup);
  }
};

// The gradient of a row's gate: Σ output gradient · what it multiplies. A team a row.
template <int N>
__global__ void row_gate_gradient(View gradient, View in, View dout, bool gated, int team) {
  for_rows(dout.rows, team, [&](std::int64_t row) {
    float sum = 0;
    RowShare<N, 0>{row < dout.rows ? dout.columns : 0, team}.each([&](int, std::int64_t c) {
      const std::int64_t i = row * dout.columns + c;
      const Pack<N> dy = load<N>(dout, i), y = activated<N>(in, i, gated);
      for (int k = 0; k < N; ++k) sum += dy.x[k] * y.x[k];
    });
    sum = team_sum(sum, team);
    if (threadIdx.x % static_cast<unsigned>(team) == 0 && row < dout.rows) put(gradient, row, sum);
  });
}

// ---- Columns
// --------------------------------------------------------------------------------------

template <int N>
__global__ void column_sums_of_strip(View parts, View of, std::int64_t strip) {
  sum_strip<N>(parts, of, strip, [&](std::int64_t, std::int64_t i) { return load<N>(of, i); });
}

__global__ void add_strips(View into, View parts) {
  sum_rows<1>(
      parts, 0, parts.rows, [&](std::int64_t, std::int64_t i) { return load<1>(parts, i); },
      [&](std::int64_t column, const Pack<1>& sum) { add(into, column, sum.x[0]); });
}

// ---- Some columns of every row; an element is one of those
// ---------------------------------------

struct AddRow {
  View rows, row;
  std::int64_t first;
  template <int N>
  __device__ void run(std::int64_t i) const {
    const std::int64_t column = i % row.rows, to = i / row.rows * rows.columns + first + column;
    Pack<N> sum = load<N>(rows, to);
    const Pack<N> more = load<N>(row, column);
    for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    store<N>(rows, to, sum);
  }
};

struct CopyColumns {
  Columns to, from;
  std::int64_t width;
  template <int N>
  __device__ void run(std::int64_t i) const {
    const std::int64_t row = i / width, column = i % width;
    store<N>(to.of, row * to.of.columns + to.first + column,
             load<N>(from.of, row * from.of.columns + from.first + column));
  }
};

struct AddColumns {
  Columns to;
  View what;
  template <int N>
  __device__ void run(std::int64_t i) const {
    const std::int64_t row = i / what.columns, column = i % what.columns;
    const std::int64_t place = row * to.of.columns + to.first + column;
    Pack<N> sum = load<N>(to.of, place);
    const Pack<N> more = load<N>(what, i);
    for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    store<N>(to.of, place, sum);
  }
};

// What each() may take for the width of rows, where packs of them begin in `columns` too.
std::int64_t width_beside(std::int64_t width, std::initializer_list<Columns> columns) {
  for (const Columns& of : columns) {
    if (of.first % 8 != 0 || of.of.columns % 8 != 0 || even_place({&of.of}) != 0) return 1;
  }
  return width;
}

// What each token has of each head, and the same by head.
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

}  // namespace

void fill(const Queue& queue, const View& out, float number) {
  each_alike(queue, "fill", Fill{out, number}, out.size(), {&out});
}

void convert(const Queue& queue, const View& out, const View& in) {
  if (out.type == in.type) {
    // Either may be the host's: addresses say so.
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
  const Residual body{out,           stream,          branch,          or_none(bias),
                      or_none(mask), bias != nullptr, mask != nullptr, dropout};
  each(queue, "residual", body, out.size(), out.columns);
}

void drop(const Queue& queue, const View& out, const View& mask, const View& in,
          const Dropout& dropout) {
  each(queue, "drop", Drop{out, mask, in, dropout}, in.size(), in.columns);
}

void drop_gradient(const Queue& queue, const View& out, const View& in, const View& mask,
                   float kept) {
  each_alike(queue, "drop_gradient", DropGradient{out, in, mask, kept}, in.size(),
             {&out, &in, &mask});
}

void activation(const Queue& queue, const View& out, const View& in, const View* row_gates,
                bool gated) {
  const Activation body{out, in, or_none(row_gates), row_gates != nullptr, gated};
  each(queue, "activation", body, out.size(), out.columns);
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
  const ActivationGradient body{din, in, dout, or_none(row_gates), row_gates != nullptr, gated};
  each(queue, "activation_gradient", body, dout.size(), dout.columns);
}

void add_column_sums(const Queue& queue, const View& into, const View& of) {
  if (of.size() == 0) return;
  const Strips strips(of);
  const Scratch parts(queue, strips.count, of.columns, ElementType::f32);
  const bool even = of.columns % 8 == 0 && even_place({&of}) == 0;
  const dim3 blocks(even ? Strips::across<8>(of) : Strips::across<1>(of),
                    static_cast<unsigned>(strips.count));
  start(queue, "column_sums_of_strip", even ? column_sums_of_strip<8> : column_sums_of_strip<1>,
        blocks, kBlock, 0, *parts, of, strips.rows);
  start(queue, "add_strips", add_strips, dim3(Strips::across<1>(of)), kBlock, 0, into, *parts);
}

void add_row(const Queue& queue, const View& rows, std::int64_t first_column, const View& row) {
  each(queue, "add_row", AddRow{rows, row, first_column}, rows.rows * row.rows,
       width_beside(row.rows, {{rows, first_column}, {row.shaped(1, row.size()), 0}}));
}

void copy_columns(const Queue& queue, const Columns& to, const Columns& from, std::int64_t width) {
  each(queue, "copy_columns", CopyColumns{to, from, width}, to.of.rows * width,
       width_beside(width, {to, from}));
}

void add_columns(const Queue& queue, const Columns& to, const View& what) {
  each(queue, "add_columns", AddColumns{to, what}, what.size(),
       width_beside(what.columns, {to, {what, 0}}));
}

void to_heads(const Queue& queue, const View& by_head, const View& by_token, std::int64_t length) {
  exchange_heads(queue, {by_head, by_token, length, false});
}

void from_heads(const Queue& queue, const View& by_token, const View& by_head,
                std::int64_t length) {
  exchange_heads(queue, {by_head, by_token, length, true});
}

}  // namespace trainyard
