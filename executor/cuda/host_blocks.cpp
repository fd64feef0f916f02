#include "executor/cuda/host_blocks.h"

#include <algorithm>

namespace trainyard {

HostBlocks::~HostBlocks() {
  for (const Block& block : blocks_) {
    cudaEventDestroy(block.free);
    cudaFreeHost(block.data);
  }
}

// Takes the smallest free block that has room.
void* HostBlocks::take(std::size_t bytes, cudaStream_t stream) {
  Block* best = nullptr;
  for (Block& block : blocks_) {
    const bool fits = !block.taken && block.bytes >= bytes;
    if (fits && (best == nullptr || block.bytes < best->bytes)) best = &block;
  }
  if (best != nullptr) {
    best->taken = true;
    status_.check(cudaStreamWaitEvent(stream, best->free, 0), "cudaStreamWaitEvent");
    return best->data;
  }
  Block made{.bytes = bytes, .taken = true};
  status_.check(cudaMallocHost(&made.data, bytes), "cudaMallocHost");
  if (made.data == nullptr) return nullptr;
  status_.check(cudaEventCreateWithFlags(&made.free, cudaEventDisableTiming),
                "cudaEventCreateWithFlags");
  blocks_.push_back(made);
  return made.data;
}

void HostBlocks::give_back(void* data, cudaStream_t stream) {
  const auto block = std::ranges::find(blocks_, data, &Block::data);
  block->taken = false;
  status_.check(cudaEventRecord(block->free, stream), "cudaEventRecord");
}

}  // namespace trainyard
