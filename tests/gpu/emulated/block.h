// Runs CUDA kernels on the host, one block after the other. The threads of a block are fibers that
// switch only where the kernel synchronises. So a value that a thread reads too early, or a barrier
// that not all threads reach, shows here as it would on a device. A barrier of a warp is a barrier
// of the whole block. Memory that nobody has written holds NaNs.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

// These names are CUDA's own.
// NOLINTBEGIN(readability-identifier-naming)
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
void __syncthreads();
int __syncthreads_or(int mine);
void __syncwarp();
unsigned __ballot_sync(unsigned mask, int mine);
int __popc(unsigned bits);
float __shfl_xor_sync(unsigned mask, float mine, int away);
// NOLINTEND(readability-identifier-naming)

struct __nv_bfloat16;

namespace trainyard {

void run_emulated(dim3 blocks, int threads, std::size_t shared,
                  const std::function<void()>& kernel);
unsigned char* emulated_shared_memory();

// The instructions ldmatrix and mma.m16n8k16 for bf16 or fp16. Their operands are laid out over the
// lanes of a warp as the PTX manual says.
void emulated_load_matrices(unsigned (&to)[4], const void* row, bool transposed);
void emulated_multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                           bool of_fp16);

}  // namespace trainyard
