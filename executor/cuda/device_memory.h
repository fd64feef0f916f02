// Tensors in device memory, and those that a plan keeps outside it in the host's. The pool is the
// device's, in the order of streams: memory of a tensor is taken on the stream that makes it and
// given back when every stream that used it has come so far.
#pragma once

#include <vector>

#include "executor/cuda/host_blocks.h"
#include "executor/cuda/queue.h"
#include "model/program/program.h"

namespace trainyard {

struct DeviceTensor {
  View view;
  std::int64_t room = 0;  // elements that there is memory for
  std::size_t bytes = 0;  // of that memory
  const ProgramBuffer* what = nullptr;
  unsigned streams = 0;  // that have used it, by bit
  bool on_host() const { return what != nullptr && what->away != OffloadTarget::none; }
  // The numbers on the host too, where they say how many rows come next.
  std::vector<float> mirror;
};

// `cast`: what a cast left in it, or nothing.
ElementType element_type(const ProgramBuffer& buffer, const CastFormat& cast);

class DeviceMemory {
 public:
  // Takes `expected` bytes at once, so that a step does not ask the device for them one by one.
  DeviceMemory(CudaStatus& status, int device, std::size_t expected);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Its shape becomes rows × columns; the numbers are lost.
  void reshape(DeviceTensor& tensor, std::int64_t rows, std::int64_t columns, const Queue& queue);
  void release(DeviceTensor& tensor, cudaStream_t stream);
  cudaMemPool_t pool() const { return pool_; }
  std::size_t held() const { return held_; }  // by tensors on the device
  // Of the pool, temporary memory included: given out, and kept from the device for that; at most
  // since the start.
  Bytes peak() const;
  Bytes reserved() const;

 private:
  void* take(const DeviceTensor& tensor, const Queue& queue);
  Bytes attribute(cudaMemPoolAttr which) const;

  CudaStatus& status_;
  HostBlocks host_;
  cudaMemPool_t pool_ = nullptr;
  std::size_t held_ = 0;
};

}  // namespace trainyard
