// Norms of rows, and rotary embedding (Su et al. 2021).
#include "executor/cuda/kernels/places.h"

namespace trainyard {
namespace {

constexpr float kEpsilon = 1e-5F;

struct RowStatistics {
  float mean, inverse;
};

// Of one row, by a block.
__device__ RowStatistics statistics_of(const View& in, std::int64_t row, bool centred) {
  const std::int64_t first = row * in.columns;
  const auto width = static_cast<float>(in.columns);
  float mean = 0;
  if (centred) {
    for (std::int64_t c = threadIdx.x; c < in.columns; c += blockDim.x) mean += at(in, first + c);
    mean = block_sum(mean) / width;
  }
  float squares = 0;
  for (std::int64_t c = threadIdx.x; c < in.columns; c += blockDim.x) {
    const float x = at(in, first + c) - mean;
    squares += x * x;
  }
  return {mean, rsqrtf(block_sum(squares) / width + kEpsilon)};
}

__global__ void norm_kernel(View out, View in, View scale, View shift, bool shifts, bool centred) {
  for (std::int64_t row = blockIdx.x; row < in.rows; row += gridDim.x) {
    const RowStatistics s = statistics_of(in, row, centred);
    for (std::int64_t c = threadIdx.x; c < in.columns; c += blockDim.x) {
      const std::int64_t i = row * in.columns + c;
      const float y = (at(in, i) - s.mean) * s.inverse * at(scale, c);
      put(out, i, shifts ? y + at(shift, c) : y);
    }
  }
}

// RMSNorm of rows that come out even: a row is read once and kept.
__global__ void even_norm_kernel(View out, View in, View scale) {
  constexpr int kMost = 4;  // packs a thread
  for (std::int64_t row = blockIdx.x; row < in.rows; row += gridDim.x) {
    Pack<8> x[kMost];
    float squares = 0;
    const std::int64_t packs = in.columns / 8;
#pragma unroll
    for (int k = 0; k < kMost; ++k) {
      const std::int64_t p = threadIdx.x + k * static_cast<std::int64_t>(blockDim.x);
      if (p >= packs) continue;
      x[k] = load<8>(in, row * in.columns + p * 8);
      for (int j = 0; j < 8; ++j) squares += x[k].x[j] * x[k].x[j];
    }
    const float inverse = rsqrtf(block_sum(squares) / static_cast<float>(in.columns) + kEpsilon);
#pragma unroll
    for (int k = 0; k < kMost; ++k) {
      const std::int64_t p = threadIdx.x + k * static_cast<std::int64_t>(blockDim.x);
      if (p >= packs) continue;
      const Pack<8> scales = load<8>(scale, p * 8);
      for (int j = 0; j < 8; ++j) x[k].x[j] *= inverse * scales.x[j];
      store<8>(out, row * in.columns + p * 8, x[k]);
    }
  }
}

// dx = (g − mean(g) − x̂·mean(g·x̂)) / σ with g = dy·scale; the first mean only where x is centred.
__global__ void norm_gradient_kernel(NormGradient of, View statistics) {
  const View& in = of.in;
  const auto width = static_cast<float>(in.columns);
  for (std::int64_t row = blockIdx.x; row < in.rows; row += gridDim.x) {
    const RowStatistics s = statistics_of(in, row, of.centred);
    float along = 0, mean = 0;
    for (std::int64_t c = threadIdx.x; c < in.columns; c += blockDim.x) {
      const std::int64_t i = row * in.columns + c;
      const float g = at(of.dout, i) * at(of.scale, c);
      along += g * (at(in, i) - s.mean) * s.inverse;
      mean += g;
    }
    along = block_sum(along) / width;
    mean = of.centred ? block_sum(mean) / width : 0;
    for (std::int64_t c = threadIdx.x; c < in.columns; c += blockDim.x) {
      const std::int64_t i = row * in.columns + c;
      const float x = (at(in, i) - s.mean) * s.inverse;
      const float g = at(of.dout, i) * at(of.scale, c);
      put(of.din, i, (g - mean - along * x) * s.inverse);
    }
    if (threadIdx.x == 0) {
      put(statistics, row * 2, s.mean);
      put(statistics, row * 2 + 1, s.inverse);
    }
  }
}

// Block (x, y): 32 columns of x̂·dy, a strip of the rows.
__global__ void scale_gradient_of_strip(View parts, View in, View dout, View statistics,
                                        std::int64_t strip) {
  __shared__ float sums[kBlock];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 32 + lane;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * strip;
  const std::int64_t end = first + strip < in.rows ? first + strip : in.rows;
  float sum = 0;
  for (std::int64_t row = first + threadIdx.x / 32; row < end; row += blockDim.x / 32) {
    if (column >= in.columns) continue;
    const std::int64_t i = row * in.columns + column;
    sum += (at(in, i) - at(statistics, row * 2)) * at(statistics, row * 2 + 1) * at(dout, i);
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= 32 || column >= in.columns) return;
  for (unsigned other = threadIdx.x + 32; other < blockDim.x; other += 32) sum += sums[other];
  put(parts, static_cast<std::int64_t>(blockIdx.y) * in.columns + column, sum);
}

// A thread turns one pair of every head.
__global__ void rotate_kernel(View x, RotaryColumns columns, RowPlaces places, double direction) {
  const std::int64_t half = columns.width / 2;
  for (std::int64_t n = global_thread(); n < x.rows * half; n += all_threads()) {
    const std::int64_t row = n / half, i = n % half;
    const double speed =
        direction * pow(1e4, -2.0 * static_cast<double>(i) / static_cast<double>(columns.width));
    const double angle = speed * static_cast<double>(position_of(places, row));
    const auto cosine = static_cast<float>(cos(angle));
    const auto sine = static_cast<float>(sin(angle));
    for (std::int64_t head = 0; head < columns.heads; ++head) {
      const std::int64_t at_a = row * x.columns + columns.first + head * columns.stride + i;
      const float a = at(x, at_a);
      const float b = at(x, at_a + half);
      put(x, at_a, a * cosine - b * sine);
      put(x, at_a + half, a * sine + b * cosine);
    }
  }
}

__global__ void join_heads_kernel(View out, View own, View shared, std::int64_t heads) {
  const std::int64_t width = out.columns / heads, mine = own.columns / heads;
  for (std::int64_t i = global_thread(); i < out.size(); i += all_threads()) {
    const std::int64_t row = i / out.columns, column = i % out.columns;
    const std::int64_t head = column / width, k = column % width;
    put(out, i,
        k < mine ? at(own, row * own.columns + head * mine + k)
                 : at(shared, row * shared.columns + k - mine));
  }
}

__global__ void split_heads_kernel(View own, View shared, View in, std::int64_t heads) {
  const std::int64_t width = in.columns / heads, mine = own.columns / heads;
  const std::int64_t columns = own.columns + shared.columns;
  for (std::int64_t i = global_thread(); i < in.rows * columns; i += all_threads()) {
    const std::int64_t row = i / columns, column = i % columns;
    if (column < own.columns) {
      const std::int64_t from = column / mine * width + column % mine;
      put(own, row * own.columns + column, at(in, row * in.columns + from));
      continue;
    }
    const std::int64_t k = column - own.columns;
    float sum = 0;
    for (std::int64_t head = 0; head < heads; ++head) {
      sum += at(in, row * in.columns + head * width + mine + k);
    }
    put(shared, row * shared.columns + k, sum);
  }
}

unsigned row_blocks(const View& of) {
  constexpr std::int64_t kMost = 132 * 16;
  return static_cast<unsigned>(of.rows < kMost ? of.rows : kMost);
}

}  // namespace

void norm(const Queue& queue, const View& out, const View& in, const View& scale, const View* shift,
          bool centred) {
  const bool even = !centred && shift == nullptr && in.columns % 8 == 0 &&
                    in.columns <= std::int64_t{32} * kBlock && in.columns >= 512;
  if (even) {
    start(queue, "norm", even_norm_kernel, dim3(row_blocks(in)), kBlock, 0, out, in, scale);
    return;
  }
  start(queue, "norm", norm_kernel, dim3(row_blocks(in)), kBlock, 0, out, in, scale,
        shift == nullptr ? View{} : *shift, shift != nullptr, centred);
}

void norm_gradient(const Queue& queue, const NormGradient& of) {
  if (of.in.rows == 0) return;
  const Scratch statistics(queue, of.in.rows, 2, ElementType::f32);
  start(queue, "norm_gradient", norm_gradient_kernel, dim3(row_blocks(of.in)), kBlock, 0, of,
        *statistics);
  constexpr std::int64_t kStrip = 256;
  const std::int64_t strips = of.in.rows < 64 * kStrip ? (of.in.rows + kStrip - 1) / kStrip : 64;
  const Scratch parts(queue, strips, of.in.columns, ElementType::f32);
  start(queue, "scale_gradient", scale_gradient_of_strip,
        dim3(static_cast<unsigned>((of.in.columns + 31) / 32), static_cast<unsigned>(strips)),
        kBlock, 0, *parts, of.in, of.dout, *statistics, (of.in.rows + strips - 1) / strips);
  add_column_sums(queue, of.scale_gradient, *parts);
  if (of.shift_gradient != nullptr) add_column_sums(queue, *of.shift_gradient, of.dout);
}

void rotate(const Queue& queue, const View& in_place, const RotaryColumns& columns,
            const RowPlaces& places, double direction) {
  start(queue, "rotate", rotate_kernel, dim3(blocks_for(in_place.rows * columns.width / 2)), kBlock,
        0, in_place, columns, places, direction);
}

void join_heads(const Queue& queue, const View& out, const View& own, const View& shared) {
  const std::int64_t heads = (out.columns - own.columns) / shared.columns;
  start(queue, "join_heads", join_heads_kernel, dim3(blocks_for(out.size())), kBlock, 0, out, own,
        shared, heads);
}

void split_heads(const Queue& queue, const View& own, const View& shared, const View& in) {
  const std::int64_t heads = (in.columns - own.columns) / shared.columns;
  start(queue, "split_heads", split_heads_kernel, dim3(blocks_for(own.size() + shared.size())),
        kBlock, 0, own, shared, in, heads);
}

}  // namespace trainyard
