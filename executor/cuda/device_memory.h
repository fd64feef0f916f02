// Tensors in device memory, and in the host's memory where a plan offloads them. Device memory
// comes from a pool in the order of streams: a tensor's memory is taken on the stream that makes
// it, and given back on a stream that comes after every stream that used it.
#pragma once

#include <vector>

#include "executor/cuda/host_blocks.h"
#include "executor/cuda/queue.h"
#include "model/program/program.h"

namespace trainyard {

struct DeviceTensor {
  View view;
  std::int64_t room = 0;  // elements that the memory has room for
  std::size_t bytes = 0;  // size of that memory
  const ProgramBuffer* what = nullptr;
  unsigned streams = 0;  // the streams that have used it, one bit each
  bool on_host() const { return what != nullptr && what->away != OffloadTarget::none; }
  // A copy on the host, where it was asked for (the numbers of rows that routing decides); else
  // empty.
  std::vector<float> mirror;
};

// How a buffer's elements are stored. `cast`: the format that a cast wrote into it, or none.
ElementType element_type(const ProgramBuffer& buffer, const CastFormat& cast);

class DeviceMemory {
 public:
  // Reserves `expected` bytes at once, so that a step does not ask the device for them bit by bit.
  DeviceMemory(CudaStatus& status, int device, std::size_t expected);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Gives the tensor a new shape, with more memory where it needs more; its numbers are lost.
  void reshape(DeviceTensor& tensor, std::int64_t rows, std::int64_t columns, const Queue& queue);
  void release(DeviceTensor& tensor, cudaStream_t stream);
  cudaMemPool_t pool() const { return pool_; }
  std::size_t held() const { return held_; }  // bytes that tensors have on the device
  // Largest amounts since the start, temporary memory included: what the pool gave out, and what it
  // kept from the device for that.
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
