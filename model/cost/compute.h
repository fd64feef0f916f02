// Time of one operator on one device: max(FLOP / attainable rate, bytes / attainable bandwidth)
// plus launch (handbook §5). The attainable rates are fitted per device, dtype and operator class.
#pragma once

#include "model/cluster/device.h"
#include "model/units.h"
#include "model/workload/operators.h"
#include "model/workload/training.h"

namespace trainyard {

// Kernel time of the three passes of an operator, for one micro-batch.
struct OperatorTime {
  Seconds forward;
  Seconds input_gradient;
  Seconds weight_gradient;
};
OperatorTime operator_time(const Device& device, const Training& training, const Operator& op);

// [m×k]·[k×n], `groups` of them, operands of `element_bytes`. Requires: the device supports the
// dtype.
Seconds gemm_time(const Device& device, Dtype dtype, const GemmShape& shape, double element_bytes);

// Forward pass of the attention core.
Seconds attention_time(const Device& device, const Stack& stack, const Operator& op);

// A fused kernel that reads and writes `traffic`; 0 bytes cost nothing.
Seconds memory_bound_time(const Device& device, Bytes traffic);

}  // namespace trainyard
