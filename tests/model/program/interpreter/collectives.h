// What collectives do to the values of all their members.
#pragma once

#include <vector>

#include "model/program/operation.h"
#include "tests/model/program/interpreter/kernels.h"

namespace trainyard::interpreter {

// `members[i]`: operands of the i-th member of the group.
void take_part(const Operation& operation, const std::vector<Operands>& members);

}  // namespace trainyard::interpreter
