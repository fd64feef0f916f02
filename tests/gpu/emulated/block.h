// Kernels on the host, one block after the other: threads of a block are fibers that change places
// where the kernel waits for the others, so what one of them reads too early, or a barrier that not
// all reach, shows here as on a device. Lanes of a warp meet where the whole block does. Memory
// that nobody has written holds NaNs.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

// CUDA's own names.
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

// ldmatrix and mma.m16n8k16 of bf16 or fp16, as PTX lays their operands out over the lanes.
void emulated_load_matrices(unsigned (&to)[4], const void* row, bool transposed);
void emulated_multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                           bool of_fp16);

}  // namespace trainyard
