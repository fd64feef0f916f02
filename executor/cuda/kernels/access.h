// Elements of views in kernels: stored as the view's type, computed in float. The type is asked for
// at run time: it is the same for all threads of a warp, and one kernel serves all recipes. What is
// scaled is multiplied as it is read and divided by the scale that stands there as it is written.
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>

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
// Ties to even; beyond the largest number: that. What is no number stays none.
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

template <typename Number, int N>
__device__ inline void load_half(const View& view, std::int64_t i, Pack<N>& pack) {
  __align__(16) Number part[N];
  const auto* from = static_cast<const Number*>(view.data) + i;
  if constexpr (N == 8) {
    *reinterpret_cast<uint4*>(part) = *reinterpret_cast<const uint4*>(from);
  } else {
    for (int k = 0; k < N; ++k) part[k] = from[k];
  }
#pragma unroll
  for (int k = 0; k < N; ++k) pack.x[k] = as_float(part[k]);
}

template <typename Number, int N>
__device__ inline void store_half(const View& view, std::int64_t i, const Pack<N>& pack) {
  __align__(16) Number part[N];
#pragma unroll
  for (int k = 0; k < N; ++k) set_number(part[k], pack.x[k]);
  auto* to = static_cast<Number*>(view.data) + i;
  if constexpr (N == 8) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(part);
  } else {
    for (int k = 0; k < N; ++k) to[k] = part[k];
  }
}

// ---- Of any type --------------------------------------------------------------------------------

template <int N>
__device__ inline Pack<N> load(const View& view, std::int64_t i) {
  Pack<N> pack;
  if (view.type == ElementType::f32) {
    const auto* from = static_cast<const float*>(view.data) + i;
    if constexpr (N % 4 == 0) {
#pragma unroll
      for (int k = 0; k < N; k += 4) {
        const float4 four = *reinterpret_cast<const float4*>(from + k);
        pack.x[k] = four.x, pack.x[k + 1] = four.y, pack.x[k + 2] = four.z, pack.x[k + 3] = four.w;
      }
    } else {
      for (int k = 0; k < N; ++k) pack.x[k] = from[k];
    }
  } else if (view.type == ElementType::bf16) {
    load_half<__nv_bfloat16>(view, i, pack);
  } else if (view.type == ElementType::f16) {
    load_half<__half>(view, i, pack);
  } else if (view.type == ElementType::u8) {
    const auto* from = static_cast<const unsigned char*>(view.data) + i;
    for (int k = 0; k < N; ++k) pack.x[k] = static_cast<float>(from[k]);
  } else {
    const auto* from = static_cast<const unsigned char*>(view.data) + i;
    const float scale = scale_at(view, i);
    for (int k = 0; k < N; ++k) pack.x[k] = narrow_number(from[k], view.type) * scale;
  }
  return pack;
}

template <int N>
__device__ inline void store(const View& view, std::int64_t i, const Pack<N>& pack) {
  if (view.type == ElementType::f32) {
    auto* to = static_cast<float*>(view.data) + i;
    if constexpr (N % 4 == 0) {
#pragma unroll
      for (int k = 0; k < N; k += 4) {
        *reinterpret_cast<float4*>(to + k) =
            make_float4(pack.x[k], pack.x[k + 1], pack.x[k + 2], pack.x[k + 3]);
      }
    } else {
      for (int k = 0; k < N; ++k) to[k] = pack.x[k];
    }
  } else if (view.type == ElementType::bf16) {
    store_half<__nv_bfloat16>(view, i, pack);
  } else if (view.type == ElementType::f16) {
    store_half<__half>(view, i, pack);
  } else if (view.type == ElementType::u8) {
    auto* to = static_cast<unsigned char*>(view.data) + i;
    for (int k = 0; k < N; ++k) to[k] = static_cast<unsigned char>(pack.x[k]);
  } else {
    auto* to = static_cast<unsigned char*>(view.data) + i;
    const float inverse = 1 / scale_at(view, i);
    for (int k = 0; k < N; ++k) to[k] = narrow_bits(pack.x[k] * inverse, view.type);
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

// Every thread gets the result. Requires: whole warps, at most 32; all threads take part.
template <typename Join>
__device__ inline float over_block(float mine, float none, const Join& join) {
  __shared__ float parts[32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int away = 16; away > 0; away /= 2) mine = join(mine, __shfl_xor_sync(~0u, mine, away));
  __syncthreads();  // nobody reads the parts of a call before
  if (lane == 0) parts[warp] = mine;
  __syncthreads();
  float all = none;
  for (int i = 0; i < static_cast<int>(blockDim.x) / 32; ++i) all = join(all, parts[i]);
  return all;
}
__device__ inline float block_sum(float mine) { return over_block(mine, 0, Sum{}); }
__device__ inline float block_max(float mine) { return over_block(mine, -INFINITY, Largest{}); }

// ---- Over all elements --------------------------------------------------------------------------

// Calls body.run<N>(i) for elements i … i + N − 1.
template <int N, typename Body>
__global__ void each_kernel(Body body, std::int64_t count) {
  for (std::int64_t i = global_thread() * N; i < count; i += all_threads() * N) {
    body.template run<N>(i);
  }
}

inline unsigned blocks_for(std::int64_t threads) {
  constexpr std::int64_t kMost = 132 * 16;
  const std::int64_t blocks = (threads + kBlock - 1) / kBlock;
  return static_cast<unsigned>(blocks < kMost ? blocks : kMost);
}

// Eight at a time where rows of `columns` come out even: operands are then aligned and no pack
// straddles two rows.
template <typename Body>
void each(const Queue& queue, const char* name, const Body& body, std::int64_t count,
          std::int64_t columns) {
  if (columns % 8 == 0) {
    start(queue, name, each_kernel<8, Body>, dim3(blocks_for(count / 8)), kBlock, 0, body, count);
  } else {
    start(queue, name, each_kernel<1, Body>, dim3(blocks_for(count)), kBlock, 0, body, count);
  }
}

}  // namespace trainyard
