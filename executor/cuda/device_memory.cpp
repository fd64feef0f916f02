#include "executor/cuda/device_memory.h"

#include <limits>

namespace trainyard {

ElementType element_type(const ProgramBuffer& buffer, const CastFormat& cast) {
  if (cast.exists()) {
    return cast.number == NarrowFloat::e4m3 ? ElementType::e4m3 : ElementType::e5m2;
  }
  if (buffer.role == BufferRole::data) return ElementType::f32;
  switch (buffer.dtype) {
    case Dtype::fp32:
      return ElementType::f32;
    case Dtype::fp16:
      return ElementType::f16;
    case Dtype::fp8:
      return ElementType::u8;
    default:
      return ElementType::bf16;
  }
}

DeviceMemory::DeviceMemory(CudaStatus& status, int device, std::size_t expected)
    : status_(status), host_(status) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, device};
  status_.check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
  std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  status_.check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &all),
                "cudaMemPoolSetAttribute");
  // Otherwise a stream for which the pool cannot grow would wait for what another stream gives
  // back: for a send, whose peer may wait for this rank (executor/cuda/release_order.h).
  int never = 0;
  status_.check(cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &never),
                "cudaMemPoolSetAttribute");
  void* at_once = nullptr;
  status_.check(cudaMallocFromPoolAsync(&at_once, expected, pool_, nullptr),
                "cudaMallocFromPoolAsync");
  if (at_once != nullptr) status_.check(cudaFreeAsync(at_once, nullptr), "cudaFreeAsync");
  status_.check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  std::uint64_t nothing = 0;
  status_.check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &nothing),
                "cudaMemPoolSetAttribute");
}

// If a pool is destroyed while memory is on its way back to it, the next pool's first allocation
// may crash inside the driver (seen with 580.159.04).
DeviceMemory::~DeviceMemory() {
  if (pool_ == nullptr) return;
  cudaDeviceSynchronize();
  cudaMemPoolDestroy(pool_);
}

void DeviceMemory::reshape(DeviceTensor& tensor, std::int64_t rows, std::int64_t columns,
                           const Queue& queue) {
  tensor.mirror.clear();
  tensor.view.rows = rows;
  tensor.view.columns = columns;
  if (tensor.view.size() <= tensor.room) return;
  release(tensor, queue.stream);
  View& view = tensor.view;
  view.data = take(tensor, queue);
  tensor.room = view.size();
  tensor.bytes = room_for(view);
  if (!tensor.on_host()) held_ += tensor.bytes;
  if (is_scaled(view.type))
    view.scales.of = static_cast<char*>(view.data) + scales_at(view.bytes());
}

void* DeviceMemory::take(const DeviceTensor& tensor, const Queue& queue) {
  if (tensor.on_host()) return host_.take(room_for(tensor.view), queue.stream);
  void* data = nullptr;
  status_.check(cudaMallocFromPoolAsync(&data, room_for(tensor.view), pool_, queue.stream),
                "cudaMallocFromPoolAsync");
  return data;
}

void DeviceMemory::release(DeviceTensor& tensor, cudaStream_t stream) {
  if (tensor.view.data != nullptr && tensor.on_host()) {
    host_.give_back(tensor.view.data, stream);
  } else if (tensor.view.data != nullptr) {
    status_.check(cudaFreeAsync(tensor.view.data, stream), "cudaFreeAsync");
    held_ -= tensor.bytes;
  }
  tensor.view.data = tensor.view.scales.of = nullptr;
  tensor.room = 0;
}

Bytes DeviceMemory::peak() const { return attribute(cudaMemPoolAttrUsedMemHigh); }
Bytes DeviceMemory::reserved() const { return attribute(cudaMemPoolAttrReservedMemHigh); }

Bytes DeviceMemory::attribute(cudaMemPoolAttr which) const {
  std::uint64_t bytes = 0;
  const cudaError_t known = cudaMemPoolGetAttribute(pool_, which, &bytes);
  return Bytes(known == cudaSuccess ? static_cast<double>(bytes) : 0);
}

}  // namespace trainyard
