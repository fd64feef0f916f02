// FLOP of a program's operations from their own shapes. Tests compare them with the FLOP of the
// network's operators (handbook §3).
#pragma once

#include "model/program/operation.h"

namespace trainyard {

// FLOP = 2mnk for a GEMM and for each of its two gradients; attention is counted in full (not
// causal), its gradient as twice its forward; 0 for memory-bound operations.
Flops flop_of(const Operation& operation);

}  // namespace trainyard
