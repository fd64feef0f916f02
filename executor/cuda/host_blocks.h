// Page-locked memory of the host, for what a plan keeps outside the device. It is reused in the
// order of streams, like a pool: a block that was given back has an event after its last use, and
// the stream that takes it next waits for that event. The driver is asked for memory only where no
// free block is large enough. That holds up every stream, so in practice it happens in the first
// step alone.
#pragma once

#include <vector>

#include "executor/cuda/queue.h"

namespace trainyard {

class HostBlocks {
 public:
  explicit HostBlocks(CudaStatus& status) : status_(status) {}
  ~HostBlocks();
  HostBlocks(const HostBlocks&) = delete;
  HostBlocks& operator=(const HostBlocks&) = delete;

  void* take(std::size_t bytes, cudaStream_t stream);
  // Requires: `data` came from take(), and `stream` comes after its every use.
  void give_back(void* data, cudaStream_t stream);

 private:
  struct Block {
    void* data = nullptr;
    std::size_t bytes = 0;
    cudaEvent_t free = nullptr;
    bool taken = false;
  };

  CudaStatus& status_;
  std::vector<Block> blocks_;
};

}  // namespace trainyard
