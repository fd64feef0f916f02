#include "model/program/lifetimes.h"

#include <algorithm>
#include <set>

namespace trainyard {
namespace {

using Operations = std::vector<Operation>;

bool is_activation(const Program& program, int buffer) {
  return program.buffer(buffer).role == BufferRole::activation;
}

// Marks the operands that free their buffers: the last use of each one, going backwards. `used` has
// the buffers that are used later or handed on. Before its `create` a buffer's place held another
// buffer.
void mark_last_uses(const Program& program, Operation& operation, std::vector<CopyKey>& used) {
  for (Operand& operand : operation.operands) {
    const CopyKey key{operand.buffer, operand.ahead};
    operand.frees = is_activation(program, operand.buffer) &&
                    std::find(used.begin(), used.end(), key) == used.end();
    if (operand.frees) used.push_back(key);
  }
  for (const Operand& operand : operation.operands) {
    if (operand.access == Access::create) std::erase(used, CopyKey{operand.buffer, operand.ahead});
  }
}

// Adds the buffers that a pass uses before it creates them, which come from an earlier pass.
void note_crossing(const Operations& pass, std::set<int>& crossing) {
  std::set<int> seen;
  for (const Operation& operation : pass) {
    if (operation.kind == OperationKind::copy) continue;  // what leaves the device comes back
    for (const Operand& operand : operation.operands) {
      const bool is_first = seen.insert(operand.buffer).second;
      if (is_first && operand.access != Access::create) crossing.insert(operand.buffer);
    }
  }
}

}  // namespace

void mark_last_uses(const Program& program, const std::vector<Operations*>& in_order,
                    std::vector<CopyKey> handed_on) {
  for (std::size_t pass = in_order.size(); pass-- > 0;) {
    Operations& list = *in_order[pass];
    for (std::size_t i = list.size(); i-- > 0;) mark_last_uses(program, list[i], handed_on);
  }
}

void narrow_scopes(Lowering& lowering, const std::vector<Operations>& passes) {
  std::set<int> crossing = {lowering.hidden, lowering.gradient, lowering.embedded,
                            lowering.embedded_gradient};
  for (const Operations& pass : passes) note_crossing(pass, crossing);
  for (const Operations& pass : passes) {
    for (const Operation& operation : pass) {
      for (const Operand& operand : operation.operands) {
        ProgramBuffer& buffer = lowering.program.buffer(operand.buffer);
        const bool everywhere = buffer.role == BufferRole::activation &&
                                buffer.scope == Scope::activation &&
                                buffer.away == OffloadTarget::none;
        if (everywhere && !crossing.contains(operand.buffer)) buffer.scope = Scope::stage;
      }
    }
  }
}

}  // namespace trainyard
