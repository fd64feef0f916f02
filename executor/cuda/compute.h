// The compute operations of a program on a device: calls for each operation the kernels and matrix
// products that carry it out, as compute() of executor/cpu/kernels does on the host.
#pragma once

#include "executor/cpu/kernels/kernels.h"
#include "executor/cuda/cudnn_attention.h"
#include "executor/cuda/device_memory.h"
#include "executor/cuda/gemm.h"
#include "executor/cuda/kernels/kernels.h"

namespace trainyard {

// The operands of one operation by access, each list in their order (Operands on the host).
struct DeviceOperands {
  std::vector<DeviceTensor*> in, out, in_place;
};

// One operation and what computing it on a device needs.
struct DeviceWork {
  const Operation& operation;
  Where where;
  const DeviceOperands& operands;
  const Queue& queue;
  Gemm& gemm;
  CudnnAttention& cudnn;
  DeviceMemory& memory;

  const View& in(std::size_t i) const { return operands.in[i]->view; }
  const View& out(std::size_t i) const { return operands.out[i]->view; }
  const View& in_place(std::size_t i) const { return operands.in_place[i]->view; }
  // nullptr where there are fewer operands.
  const View* in_if(std::size_t i) const {
    return i < operands.in.size() ? &operands.in[i]->view : nullptr;
  }
  const View* in_place_if(std::size_t i) const {
    return i < operands.in_place.size() ? &operands.in_place[i]->view : nullptr;
  }
};

void compute(const DeviceWork& work);

// A weight as a GEMM reads it: cast where the operation casts weights (CastWeight of
// executor/cpu/kernels/kernels.h), the weight itself in wider recipes.
class DeviceWeight {
 public:
  DeviceWeight(const DeviceWork& work, const View& weight);
  const View& operator*() const { return view_; }

 private:
  Scratch room_;
  View view_;
};

// Families of operations, each in its own file.
void compute_attention(const DeviceWork& work);
void compute_experts(const DeviceWork& work);
void compute_ends(const DeviceWork& work);

// The numbers of a tensor on the host. The first call waits for the stream; the copy stays in the
// tensor's mirror.
const std::vector<float>& mirrored(const Queue& queue, DeviceTensor& tensor);
std::vector<float> downloaded(const Queue& queue, const View& view);
void upload(const Queue& queue, const View& view, const std::vector<float>& numbers);

RowPlaces row_places(const Where& where, std::int64_t rows);
Dropout dropout_of(const Operation& operation, const Where& where, std::int64_t rows);

}  // namespace trainyard
