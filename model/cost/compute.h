// Time of the three passes (forward, input gradient, weight gradient) of one operator on one
// device: which kernels a pass runs (handbook §5), and which memory traffic it has besides. The
// kernels themselves are priced in model/cost/kernels/, one file for each family.
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
// `known`: times of GEMMs on this device; null: GEMMs are timed anew.
OperatorTime operator_time(const Device& device, const Training& training, const Operator& op,
                           const GemmTimeTable* known = nullptr);
// The part of operator_time() that casts the GEMM's input (forward) and the gradient of its output
// (input gradient).
OperatorTime cast_time(const Device& device, const Training& training, const Operator& op);

}  // namespace trainyard
