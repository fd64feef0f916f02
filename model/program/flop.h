// FLOP of operations by their own shapes: what a test compares with the operators' (handbook §3).
#pragma once

#include "model/program/operation.h"

namespace trainyard {

// 2mnk for a GEMM and for each of its gradients; attention in full, its gradient twice its forward;
// nothing for what is bound by memory.
Flops flop_of(const Operation& operation);

}  // namespace trainyard
