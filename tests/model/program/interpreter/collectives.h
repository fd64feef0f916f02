// What a collective does to the values of all its members.
#pragma once

#include <vector>

#include "executor/cpu/kernels/kernels.h"
#include "model/program/operation.h"

namespace trainyard::interpreter {

// `members[i]` holds the operands of the i-th member of the group.
void take_part(const Operation& operation, const std::vector<Operands<double>>& members);

}  // namespace trainyard::interpreter
