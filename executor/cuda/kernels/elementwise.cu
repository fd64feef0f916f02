// What is computed element by element: residuals, dropout, activations, sums.
#include "executor/cuda/kernels/access.h"
#include "executor/cuda/kernels/places.h"

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

// The gradient of a row's gate: Σ output gradient · what it multiplies. A block a row.
__global__ void row_gate_gradient(View gradient, View in, View dout, bool gated) {
  for (std::int64_t row = blockIdx.x; row < dout.rows; row += gridDim.x) {
    float sum = 0;
    for (std::int64_t c = threadIdx.x; c < dout.columns; c += blockDim.x) {
      const std::int64_t i = row * dout.columns + c;
      sum += at(dout, i) * activated<1>(in, i, gated).x[0];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) put(gradient, row, sum);
  }
}

// ---- Columns
// --------------------------------------------------------------------------------------

// Block (x, y): 32 columns, a strip of the rows.
__global__ void column_sums_of_strip(View parts, View of, std::int64_t strip) {
  __shared__ float sums[kBlock];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 32 + lane;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * strip;
  const std::int64_t end = first + strip < of.rows ? first + strip : of.rows;
  float sum = 0;
  for (std::int64_t row = first + threadIdx.x / 32; row < end; row += blockDim.x / 32) {
    if (column < of.columns) sum += at(of, row * of.columns + column);
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= 32 || column >= of.columns) return;
  for (unsigned other = threadIdx.x + 32; other < blockDim.x; other += 32) sum += sums[other];
  put(parts, static_cast<std::int64_t>(blockIdx.y) * of.columns + column, sum);
}

__global__ void add_strips(View into, View parts) {
  for (std::int64_t column = global_thread(); column < parts.columns; column += all_threads()) {
    float sum = 0;
    for (std::int64_t strip = 0; strip < parts.rows; ++strip) {
      sum += at(parts, strip * parts.columns + column);
    }
    add(into, column, sum);
  }
}

__global__ void add_row_kernel(View rows, std::int64_t first, View row) {
  const std::int64_t count = rows.rows * row.rows;
  for (std::int64_t i = global_thread(); i < count; i += all_threads()) {
    add(rows, i / row.rows * rows.columns + first + i % row.rows, at(row, i % row.rows));
  }
}

__global__ void copy_columns_kernel(Columns to, Columns from, std::int64_t width) {
  const std::int64_t count = to.of.rows * width;
  for (std::int64_t i = global_thread(); i < count; i += all_threads()) {
    const std::int64_t row = i / width, column = i % width;
    put(to.of, row * to.of.columns + to.first + column,
        at(from.of, row * from.of.columns + from.first + column));
  }
}

__global__ void add_columns_kernel(Columns to, View what) {
  for (std::int64_t i = global_thread(); i < what.size(); i += all_threads()) {
    const std::int64_t row = i / what.columns, column = i % what.columns;
    add(to.of, row * to.of.columns + to.first + column, at(what, i));
  }
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
        body, body.tokens.size());
}

View or_none(const View* view) { return view == nullptr ? View{} : *view; }

}  // namespace

void fill(const Queue& queue, const View& out, float number) {
  each(queue, "fill", Fill{out, number}, out.size(), out.columns);
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
  each(queue, "convert", Convert{out, in}, in.size(), in.columns);
}

void add_to(const Queue& queue, const View& into, const View& what) {
  each(queue, "add_to", Add{into, into, what}, what.size(), what.columns);
}

void add(const Queue& queue, const View& out, const View& a, const View& b) {
  each(queue, "add", Add{out, a, b}, out.size(), out.columns);
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
  each(queue, "drop_gradient", DropGradient{out, in, mask, kept}, in.size(), in.columns);
}

void activation(const Queue& queue, const View& out, const View& in, const View* row_gates,
                bool gated) {
  const Activation body{out, in, or_none(row_gates), row_gates != nullptr, gated};
  each(queue, "activation", body, out.size(), out.columns);
}

void activation_gradient(const Queue& queue, const View& din, const View& in, const View& dout,
                         const View* row_gates, const View* row_gates_gradient, bool gated) {
  if (row_gates_gradient != nullptr) {
    start(queue, "row_gate_gradient", row_gate_gradient,
          dim3(static_cast<unsigned>(dout.rows < 65535 ? dout.rows : 65535)), kBlock, 0,
          *row_gates_gradient, in, dout, gated);
  }
  const ActivationGradient body{din, in, dout, or_none(row_gates), row_gates != nullptr, gated};
  each(queue, "activation_gradient", body, dout.size(), dout.columns);
}

void add_column_sums(const Queue& queue, const View& into, const View& of) {
  if (of.size() == 0) return;
  constexpr std::int64_t kStrip = 256;
  const std::int64_t strips = of.rows < 64 * kStrip ? (of.rows + kStrip - 1) / kStrip : 64;
  const Scratch parts(queue, strips, of.columns, ElementType::f32);
  start(queue, "column_sums_of_strip", column_sums_of_strip,
        dim3(static_cast<unsigned>((of.columns + 31) / 32), static_cast<unsigned>(strips)), kBlock,
        0, *parts, of, (of.rows + strips - 1) / strips);
  start(queue, "add_strips", add_strips, dim3(blocks_for(of.columns)), kBlock, 0, into, *parts);
}

void add_row(const Queue& queue, const View& rows, std::int64_t first_column, const View& row) {
  start(queue, "add_row", add_row_kernel, dim3(blocks_for(rows.rows * row.rows)), kBlock, 0, rows,
        first_column, row);
}

void copy_columns(const Queue& queue, const Columns& to, const Columns& from, std::int64_t width) {
  start(queue, "copy_columns", copy_columns_kernel, dim3(blocks_for(to.of.rows * width)), kBlock, 0,
        to, from, width);
}

void add_columns(const Queue& queue, const Columns& to, const View& what) {
  start(queue, "add_columns", add_columns_kernel, dim3(blocks_for(what.size())), kBlock, 0, to,
        what);
}

void to_heads(const Queue& queue, const View& by_head, const View& by_token, std::int64_t length) {
  exchange_heads(queue, {by_head, by_token, length, false});
}

void from_heads(const Queue& queue, const View& by_token, const View& by_head,
                std::int64_t length) {
  exchange_heads(queue, {by_head, by_token, length, true});
}

}  // namespace trainyard
