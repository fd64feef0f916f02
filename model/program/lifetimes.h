// When the memory of a unit's buffers returns, and how many instances of each there are. Internal
// to model/program.
#pragma once

#include <utility>
#include <vector>

#include "model/program/parts/unit.h"

namespace trainyard {

using CopyKey = std::pair<int, int>;  // of a buffer between layers: number, Operand::ahead

// Marks the operands of passes that follow each other which free their buffers: the last use of
// each one but those that are `handed_on`.
void mark_last_uses(const Program& program, const std::vector<std::vector<Operation>*>& in_order,
                    std::vector<CopyKey> handed_on);

// Gives a buffer that lives only within one pass of one unit one instance on the stage, instead of
// one for every layer and micro-batch.
void narrow_scopes(Lowering& lowering, const std::vector<std::vector<Operation>>& passes);

}  // namespace trainyard
