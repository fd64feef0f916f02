// Memory of the host that the device reads and writes by itself, for what a plan keeps outside the
// device. In the order of streams, as a pool of the device is: a block that was given back has an
// event behind its last user, which the stream that takes it next waits for. Asked of the driver
// only where no block is large enough, which holds up every stream: a first step does it.
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
  // Requires: of take(). `stream` comes after every use.
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
