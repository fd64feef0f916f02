// How a kernel is launched, and device functions that kernels share. CUDA's launch syntax stands in
// this file alone: the tests replace it to run kernels on the host (tests/gpu/emulated).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "executor/cuda/queue.h"

namespace trainyard {

inline constexpr int kBlock = 256;  // threads of a block

template <typename... P, typename... A>
void start(const Queue& queue, const char* name, void (*kernel)(P...), dim3 blocks, int threads,
           std::size_t shared, A... arguments) {
  // a kernel may use 48 KiB, static shared memory included
  constexpr std::size_t kUnasked = 32 * 1024;
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || !queue.status.ok()) return;
  if (shared > kUnasked) {
    queue.status.check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(shared)),
                       name);
  }
  kernel<<<blocks, threads, shared, queue.stream>>>(arguments...);
  queue.status.check(cudaGetLastError(), name);
}

// Most bytes of shared memory that a block may ask for.
inline std::size_t most_shared_memory(const Queue& queue) {
  int device = 0, bytes = 0;
  queue.status.check(cudaGetDevice(&device), "cudaGetDevice");
  queue.status.check(
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
      "cudaDeviceGetAttribute");
  return static_cast<std::size_t>(bytes);
}

__device__ inline unsigned char* shared_memory() {
  extern __shared__ __align__(16) unsigned char memory[];
  return memory;
}

// Approximations in two instructions each. The exponential is off by some 2 + |x| units of the last
// place; results below 2⁻¹²⁶, and quotients by more than 2¹²⁶, become zero.
__device__ inline float exponential(float x) {
  float power = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.4426950408889634F));
  return power;
}
__device__ inline float quotient(float a, float b) {
  float inverse = 0;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
  return a * inverse;
}

// A barrier for some warps of a block, `threads` threads in all. Other warps may meet under another
// `number`, 1 … 15.
__device__ inline void meet(unsigned number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// ---- To shared memory, on its own way -----------------------------------------------------------

// Begins an asynchronous copy of 16 aligned bytes, through the L1 cache or past it. The thread that
// asked for copies has to wait for them, and only it may read them then.
template <bool kCached>
__device__ inline void begin_copy(uint4* to, const void* from) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const std::size_t global = __cvta_generic_to_global(from);
  if constexpr (kCached) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global)
                 : "memory");
  } else {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global)
                 : "memory");
  }
}
// Ends a group of copies, and waits for all groups before it.
__device__ inline void wait_for_copies_before() {
  asm volatile("cp.async.commit_group;\n cp.async.wait_group 1;" ::: "memory");
}

// ---- Of a warp, by PTX -----------------------------------------------------------------------

// Loads four 8×8 matrices of 16-bit numbers; lane l gives the address of row l mod 8 of matrix l /
// 8.
__device__ inline void load_matrices(unsigned (&to)[4], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_transposed(unsigned (&to)[4], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// sum [16×8] += a [16×16] · b [16×8] of bf16 or fp16; PTX ISA, mma.m16n8k16.
template <typename Number>
__device__ inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0,
                                    unsigned b1) {
  if constexpr (std::is_same_v<Number, __half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    static_assert(std::is_same_v<Number, __nv_bfloat16>);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

}  // namespace trainyard
