// Time of the three passes of one operator on one device: which kernels a pass runs (handbook §5),
// and which traffic it carries beside them. The kernels themselves are priced in
// model/cost/kernels/, a file a family.
#pragma once

#include "model/cluster/device.h"
#include "model/units.h"
#include "model/workload/operators.h"
#include "model/workload/training.h"

namespace trainyard {

class GemmTimeTable;

// Kernel time of the three passes of an operator, for one micro-batch.
struct OperatorTime {
  Seconds forward;
  Seconds input_gradient;
  Seconds weight_gradient;
};
// `known`: of this device; null: none.
OperatorTime operator_time(const Device& device, const Training& training, const Operator& op,
                           const GemmTimeTable* known = nullptr);
// What of it casts the GEMM's input and the gradient of its output.
OperatorTime cast_time(const Device& device, const Training& training, const Operator& op);

}  // namespace trainyard
