// Elements of views in kernels: stored as the view's type, computed in float. The type is read at
// run time: it is the same for all threads of a warp, and one kernel serves all recipes. Scaled
// numbers are multiplied by their scale when read, and divided by the scale already stored when
// written.
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstring>
#include <initializer_list>

#include "executor/cuda/kernels/kernels.h"
#include "executor/cuda/kernels/launch.h"

namespace trainyard {

template <int N>
struct Pack {
  float x[N];
};

// ---- Numbers in 8 bits --------------------------------------------------------------------------

__device__ inline __nv_fp8_interpretation_t interpretation_of(ElementType type) {
  return type == ElementType::e4m3 ? __NV_E4M3 : __NV_E5M2;
}
__device__ inline float narrow_number(unsigned char bits, ElementType type) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, interpretation_of(type))));
}
// Rounds ties to even; numbers beyond the format's largest become the largest. Infinities and NaN
// become NaN.
__device__ inline unsigned char narrow_bits(float number, ElementType type) {
  const float kept = fabsf(number) == INFINITY ? NAN : number;
  return __nv_cvt_float_to_fp8(kept, __NV_SATFINITE, interpretation_of(type));
}
__device__ inline float scale_at(const View& view, std::int64_t i) {
  if (view.scales.block == 0) return *static_cast<const float*>(view.scales.of);
  const auto* exponents = static_cast<const unsigned char*>(view.scales.of);
  return ldexpf(1.0F, exponents[i / view.scales.block] - 127);
}

// ---- Numbers in 16 bits -------------------------------------------------------------------------

__device__ inline float as_float(__nv_bfloat16 number) { return __bfloat162float(number); }
__device__ inline float as_float(__half number) { return __half2float(number); }
__device__ inline void set_number(__nv_bfloat16& to, float number) {
  to = __float2bfloat16(number);
}
__device__ inline void set_number(__half& to, float number) { to = __float2half(number); }

// Eight elements as they lie in memory. Fetching several of them before unpacking the first hides
// the latency of memory.
struct Raw {
  uint4 words[2];
};
__device__ inline Raw fetch(const View& view, std::int64_t i) {
  Raw raw{};
  const char* from =
      static_cast<const char*>(view.data) + i * static_cast<std::int64_t>(bytes_of(view.type));
  if (view.type == ElementType::f32) {
    raw.words[0] = reinterpret_cast<const uint4*>(from)[0];
    raw.words[1] = reinterpret_cast<const uint4*>(from)[1];
  } else if (bytes_of(view.type) == 2) {
    raw.words[0] = *reinterpret_cast<const uint4*>(from);
  } else {
    const uint2 half = *reinterpret_cast<const uint2*>(from);
    raw.words[0].x = half.x, raw.words[0].y = half.y;
  }
  return raw;
}
__device__ inline void put_raw(const View& view, std::int64_t i, const Raw& raw) {
  char* to = static_cast<char*>(view.data) + i * static_cast<std::int64_t>(bytes_of(view.type));
  if (view.type == ElementType::f32) {
    reinterpret_cast<uint4*>(to)[0] = raw.words[0];
    reinterpret_cast<uint4*>(to)[1] = raw.words[1];
  } else if (bytes_of(view.type) == 2) {
    *reinterpret_cast<uint4*>(to) = raw.words[0];
  } else {
    *reinterpret_cast<uint2*>(to) = make_uint2(raw.words[0].x, raw.words[0].y);
  }
}

// Takes N consecutive numbers: eight from `raw`, fewer from memory.
template <typename Number, int N>
__device__ inline void take_part(const View& view, std::int64_t i, const Raw& raw,
                                 Number (&part)[N]) {
  if constexpr (N == 8) {
    memcpy(part, raw.words, sizeof(part));
  } else {
    const auto* from = static_cast<const Number*>(view.data) + i;
    for (int k = 0; k < N; ++k) part[k] = from[k];
  }
}
template <typename Number, int N>
__device__ inline void put_part(const View& view, std::int64_t i, const Number (&part)[N]) {
  if constexpr (N == 8) {
    Raw raw{};
    memcpy(raw.words, part, sizeof(part));
    put_raw(view, i, raw);
  } else {
    auto* to = static_cast<Number*>(view.data) + i;
    for (int k = 0; k < N; ++k) to[k] = part[k];
  }
}

template <typename Number, int N>
__device__ inline void halves(const View& view, std::int64_t i, const Raw& raw, Pack<N>& pack) {
  Number part[N];
  take_part(view, i, raw, part);
#pragma unroll
  for (int k = 0; k < N; ++k) pack.x[k] = as_float(part[k]);
}
// Unpacks word by word: one shift or mask for each number. Taking the numbers apart first would
// cost more instructions.
__device__ inline Pack<8> bfloats(const Raw& raw) {
  const unsigned words[4] = {raw.words[0].x, raw.words[0].y, raw.words[0].z, raw.words[0].w};
  Pack<8> pack;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    pack.x[2 * k] = __uint_as_float(words[k] << 16);
    pack.x[2 * k + 1] = __uint_as_float(words[k] & 0xffff0000U);
  }
  return pack;
}
template <typename Number, int N>
__device__ inline void store_halves(const View& view, std::int64_t i, const Pack<N>& pack) {
  Number part[N];
#pragma unroll
  for (int k = 0; k < N; ++k) set_number(part[k], pack.x[k]);
  put_part(view, i, part);
}

// ---- Of any type --------------------------------------------------------------------------------

// Elements i … i + N − 1 as floats; with N = 8, from what fetch() has brought.
template <int N>
__device__ inline Pack<N> unpacked(const View& view, std::int64_t i, const Raw& raw) {
  Pack<N> pack;
  if (view.type == ElementType::f32) {
    take_part(view, i, raw, pack.x);
  } else if (view.type == ElementType::bf16) {
    if constexpr (N == 8) {
      pack = bfloats(raw);
    } else {
      halves<__nv_bfloat16>(view, i, raw, pack);
    }
  } else if (view.type == ElementType::f16) {
    halves<__half>(view, i, raw, pack);
  } else {
    unsigned char part[N];
    take_part(view, i, raw, part);
    const float scale = view.type == ElementType::u8 ? 1 : scale_at(view, i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      pack.x[k] = view.type == ElementType::u8 ? static_cast<float>(part[k])
                                               : narrow_number(part[k], view.type) * scale;
    }
  }
  return pack;
}
// What unpacked() needs. Fetch several operands before unpacking the first.
template <int N>
__device__ inline Raw fetch_pack(const View& view, std::int64_t i) {
  if constexpr (N == 8) return fetch(view, i);
  return Raw{};
}
// Requires: with N = 8, the elements at i are aligned.
template <int N>
__device__ inline Pack<N> load(const View& view, std::int64_t i) {
  return unpacked<N>(view, i, fetch_pack<N>(view, i));
}

template <int N>
__device__ inline void store(const View& view, std::int64_t i, const Pack<N>& pack) {
  if (view.type == ElementType::f32) {
    put_part(view, i, pack.x);
  } else if (view.type == ElementType::bf16) {
    store_halves<__nv_bfloat16>(view, i, pack);
  } else if (view.type == ElementType::f16) {
    store_halves<__half>(view, i, pack);
  } else {
    unsigned char part[N];
    const float inverse = view.type == ElementType::u8 ? 1 : 1 / scale_at(view, i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      part[k] = view.type == ElementType::u8 ? static_cast<unsigned char>(pack.x[k])
                                             : narrow_bits(pack.x[k] * inverse, view.type);
    }
    put_part(view, i, part);
  }
}

__device__ inline float at(const View& view, std::int64_t i) { return load<1>(view, i).x[0]; }
__device__ inline void put(const View& view, std::int64_t i, float number) {
  store<1>(view, i, {{number}});
}
__device__ inline void add(const View& view, std::int64_t i, float number) {
  put(view, i, at(view, i) + number);
}

__device__ inline std::int64_t global_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t all_threads() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

// ---- Over a block ------------------------------------------------------------------------------

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Combines the values of all threads of a block; every thread gets the result. Requires: whole
// warps, at most 32; all threads take part.
template <typename Join>
__device__ inline float over_block(float mine, float none, const Join& join) {
  __shared__ float parts[32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int away = 16; away > 0; away /= 2) mine = join(mine, __shfl_xor_sync(~0u, mine, away));
  __syncthreads();  // no thread still reads parts of an earlier call
  if (lane == 0) parts[warp] = mine;
  __syncthreads();
  float all = none;
  for (int i = 0; i < static_cast<int>(blockDim.x) / 32; ++i) all = join(all, parts[i]);
  return all;
}
__device__ inline float block_sum(float mine) { return over_block(mine, 0, Sum{}); }
__device__ inline float block_max(float mine) { return over_block(mine, -INFINITY, Largest{}); }

// ---- Over all elements --------------------------------------------------------------------------

// Calls body.run<N>(i) for elements i … i + N − 1 of begin … end − 1, as one of `threads` threads:
// N at a time where i − even is a multiple of N, one by one before and after that.
struct Stretch {
  std::int64_t begin = 0, end = 0, even = 0;
};
template <int N, typename Body>
__device__ inline void each_of(const Stretch& span, std::int64_t thread, std::int64_t threads,
                               Body&& body) {
  if constexpr (N == 1) {
    for (std::int64_t i = span.begin + thread; i < span.end; i += threads) {
      body.template run<1>(i);
    }
  } else {
    const std::int64_t count = span.end - span.begin;
    const std::int64_t off = ((span.even - span.begin) % N + N) % N;
    const std::int64_t head = off < count ? off : count;
    const std::int64_t packs = (count - head) / N;
    for (std::int64_t p = thread; p < packs; p += threads) {
      body.template run<N>(span.begin + head + p * N);
    }
    for (std::int64_t k = thread; k < count - packs * N; k += threads) {
      body.template run<1>(span.begin + (k < head ? k : k + packs * N));
    }
  }
}

template <int N, typename Body>
__global__ void each_kernel(Body body, Stretch span) {
  each_of<N>(span, global_thread(), all_threads(), body);
}

// Most blocks of a kernel whose blocks loop over the work: 16 for each multiprocessor of an H100.
inline constexpr std::int64_t kMostBlocks = 132 * 16;
inline unsigned blocks_at_most(std::int64_t blocks, std::int64_t most = kMostBlocks) {
  return static_cast<unsigned>(blocks < most ? blocks : most);
}
inline unsigned blocks_for(std::int64_t threads) {
  return blocks_at_most((threads + kBlock - 1) / kBlock);
}

// The first element from which eight of each operand are aligned; −1: there is none.
inline std::int64_t even_place(std::initializer_list<const View*> views) {
  const auto is_even = [](const View& view, std::int64_t i) {
    if (view.scales.block > 0 && i > 0) return false;  // eight elements must lie in one block
    const std::size_t bytes = bytes_of(view.type);
    const std::size_t aligned = bytes == 1 ? 8 : 16;
    return (reinterpret_cast<std::uintptr_t>(view.data) + static_cast<std::size_t>(i) * bytes) %
               aligned ==
           0;
  };
  for (std::int64_t i = 0; i < 8; ++i) {
    bool all = true;
    for (const View* view : views) all = all && is_even(*view, i);
    if (all) return i;
  }
  return -1;
}

// Row and column of element i of a matrix.
struct Spot {
  std::int64_t row, column, i;
};
// Calls body.run<N>(spot) for every N elements of a matrix whose rows have `packs` · N. A thread
// visits the same columns in every step-th row and divides once: a 64-bit division for each pack
// would take longer than the memory traffic.
template <int N, typename Body>
__global__ void each_spot_kernel(Body body, std::int64_t rows, unsigned packs, unsigned step) {
  const auto thread = static_cast<unsigned>(global_thread());
  const std::int64_t column = std::int64_t{thread % packs} * N;
  const std::int64_t columns = std::int64_t{packs} * N;
  if (thread / packs >= step) return;
  for (std::int64_t row = thread / packs; row < rows; row += step) {
    body.template run<N>({row, column, row * columns + column});
  }
}

// Visits a matrix eight elements at a time if rows are a multiple of eight and `even` says the same
// of every operand: then operands are aligned and no pack straddles two rows.
template <typename Body>
void each(const Queue& queue, const char* name, const Body& body, std::int64_t rows,
          std::int64_t columns, bool even = true) {
  if (rows == 0 || columns == 0) return;
  const bool eight = even && columns % 8 == 0;
  const std::int64_t packs = eight ? columns / 8 : columns;
  std::int64_t step = kMostBlocks * kBlock / packs;
  step = step < 1 ? 1 : step < rows ? step : rows;
  start(queue, name, eight ? each_spot_kernel<8, Body> : each_spot_kernel<1, Body>,
        dim3(static_cast<unsigned>((packs * step + kBlock - 1) / kBlock)), kBlock, 0, body, rows,
        static_cast<unsigned>(packs), static_cast<unsigned>(step));
}

// For results whose element i needs only element i of each operand: eight at a time, and one by one
// at the ends where the operands are not aligned.
template <typename Body>
void each_alike(const Queue& queue, const char* name, const Body& body, std::int64_t count,
                std::initializer_list<const View*> operands) {
  const std::int64_t even = even_place(operands);
  if (even >= 0) {
    start(queue, name, each_kernel<8, Body>, dim3(blocks_for((count + 7) / 8)), kBlock, 0, body,
          Stretch{0, count, even});
  } else {
    start(queue, name, each_kernel<1, Body>, dim3(blocks_for(count)), kBlock, 0, body,
          Stretch{0, count, 0});
  }
}

}  // namespace trainyard
