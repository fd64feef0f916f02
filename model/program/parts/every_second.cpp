// Selective recomputation as torchtitan means it: every second GEMM of a layer, in the order of its
// modules, is recomputed, and so are all memory-bound operations. The outputs of the other GEMMs
// and of attention are kept.
//
// The projections of queries, keys and values and the output projection are the first four GEMMs;
// those of the keys and of the output are recomputed. Of the MLP's first GEMM the first half is
// recomputed, of its last one nothing, as the estimate counts them (torchtitan recomputes the
// second half, which costs the same; of an MLP without a gate it keeps the first GEMM whole).
// Shared and routed experts are treated alike. Of the projections to latent vectors and back half
// is recomputed, and half of the router.
//
// What attention exchanged between context ranks is not recomputed, and the blocks of a ring are
// not kept either: to the policy ring attention is one operation, of which it sees output and
// statistics (_CachingTorchDispatchMode is off within an operation on distributed tensors).
// Reduce-scatters and the exchange of tokens with experts are kept. Other exchanges are repeated,
// except the last one, whose GEMM is kept. Nothing after the experts' last GEMM is needed again,
// nor after a compiled layer's last one. An eager policy keeps the MLP's output by its number, and
// repeats the sum that it goes into. What it keeps is there until the layer is recomputed, even if
// nobody reads it then.
#include <algorithm>
#include <set>
#include <utility>

#include "model/program/parts/unit.h"

namespace trainyard {
namespace {

using Operations = std::vector<Operation>;

std::vector<Operand> created_by(const Operation& op) {
  std::vector<Operand> created;
  std::copy_if(op.operands.begin(), op.operands.end(), std::back_inserter(created),
               [](const Operand& operand) { return operand.access == Access::create; });
  return created;
}

bool is_gemm(const Operation& op, OperatorKind part) {
  return op.kind == OperationKind::linear && op.part == part;
}

// The keys of a QKV projection alone: the first rows of the weight that they share with values.
Operation keys_of(const Lowering& lowering, const Operation& projection) {
  const std::vector<Operand> created = created_by(projection);
  const std::size_t read = projection.operands.size() - created.size();
  const bool biased = read > 3;  // input, two weights, two biases
  Operation keys = projection;
  keys.operands = {projection.operands[0], projection.operands[2]};
  if (biased) keys.operands.push_back(projection.operands[4]);
  keys.operands.push_back(created[1]);
  const ProgramBuffer& buffer = lowering.program.buffer(created[1].buffer);
  keys.gemm.n = static_cast<double>(buffer.columns);
  return keys;
}

// The halves of a GEMM's output: `again` is recomputed, `kept` is kept.
struct Halves {
  std::vector<Operand> whole;
  int again = -1, kept = -1;
};

bool is_some_gemm(const Operation& op) {
  return op.kind == OperationKind::linear || op.kind == OperationKind::grouped_linear;
}

bool is_halved(const Operation& op) {
  return is_some_gemm(op) && op.part != OperatorKind::qkv_projection &&
         op.part != OperatorKind::output_projection;
}

// The last GEMM of a branch: of the MLP, of the shared experts, of the routed ones.
bool is_last(const Operation& op) {
  const bool down = op.part == OperatorKind::mlp_down || op.part == OperatorKind::shared_down ||
                    op.part == OperatorKind::expert_down;
  return is_some_gemm(op) && down;
}

bool scatters(const Operation& op) {
  return op.kind == OperationKind::reduce_scatter && op.group == Group::tensor;
}

bool moves_tokens(const Operation& op) {
  return op.group == Group::expert || op.group == Group::expert_tensor;
}

Halves halves_of(Lowering& lowering, const Operation& gemm) {
  Halves halves{.whole = created_by(gemm)};
  ProgramBuffer half = lowering.program.buffer(halves.whole.front().buffer);
  std::int64_t columns = 0;
  for (const Operand& operand : halves.whole) {
    columns += lowering.program.buffer(operand.buffer).columns;
  }
  half.name = "first half again";
  half.columns = columns / 2;
  halves.again = lowering.add(half);
  half.name = "second half kept";
  half.columns = columns - columns / 2;
  halves.kept = lowering.add(half);
  return halves;
}

Operation first_half(const Lowering& lowering, Operation gemm, const Halves& halves) {
  gemm.operands.resize(gemm.operands.size() - halves.whole.size());
  gemm.operands.push_back(creates(halves.again));
  gemm.gemm.n = static_cast<double>(lowering.program.buffer(halves.again).columns);
  return gemm;
}

Operation columns_moved(const Lowering& lowering, std::vector<Operand> operands) {
  return {.kind = OperationKind::move, .dtype = lowering.dtype, .operands = std::move(operands)};
}

Operation keeping(const Lowering& lowering, const Halves& halves) {
  std::vector<Operand> operands;
  for (const Operand& operand : halves.whole) operands.push_back(reads(operand.buffer));
  operands.push_back(creates(halves.kept));
  return columns_moved(lowering, std::move(operands));
}

// What is recomputed of a forward operation; nothing: its output is kept, or not needed again.
class Again {
 public:
  explicit Again(Lowering& lowering)
      : lowering_(lowering),
        discarded_(lowering.activation("output again", lowering.local_tokens,
                                       lowering.model.hidden_size)) {}

  Operations of(const Operation& op) {
    if (behind_kept_) return {};
    if (keeps(op)) {
      const bool by_number = is_last(op) && op.part != OperatorKind::expert_down;
      const bool by_policy = by_number || scatters(op);
      for (const Operand& operand : created_by(op)) {
        kept_.insert(operand.buffer);
        if (by_policy) kept_by_policy.push_back(reads(operand.buffer));
      }
      return {};
    }
    if (is_gemm(op, OperatorKind::qkv_projection)) {
      const std::vector<Operand> created = created_by(op);
      for (const Operand& operand : {created[0], created[2]}) {
        kept_.insert(operand.buffer);
        kept_by_policy.push_back(reads(operand.buffer));
      }
      return {keys_of(lowering_, op)};
    }
    if (is_halved(op)) {
      halves.push_back(halves_of(lowering_, op));
      std::vector<Operand> joined = {reads(halves.back().again), reads(halves.back().kept)};
      joined.insert(joined.end(), halves.back().whole.begin(), halves.back().whole.end());
      return {first_half(lowering_, op, halves.back()), columns_moved(lowering_, joined)};
    }
    return {repeated(op)};
  }

  std::vector<Halves> halves;
  std::vector<Operand> kept_by_policy;  // buffers that may never be read again

 private:
  bool keeps(const Operation& op) {
    if (is_gemm(op, OperatorKind::mlp_down)) behind_last_ = true;
    if (is_last(op) && op.part == OperatorKind::expert_down) behind_kept_ = true;
    if (is_gemm(op, OperatorKind::mlp_down) && lowering_.training.stack.compiled) {
      behind_kept_ = true;
    }
    const bool sums_what_is_kept =
        op.kind == OperationKind::all_reduce && kept_.contains(op.operands.front().buffer);
    return op.part == OperatorKind::attention_core || op.group == Group::context ||
           op.part == OperatorKind::scatter_copy || op.kind == OperationKind::reduce_scatter ||
           is_last(op) || moves_tokens(op) || sums_what_is_kept ||
           (behind_last_ && is_communication(op.kind));
  }

  // A kept buffer that rotary already rotated in place is not rotated again.
  Operation repeated(Operation op) {
    std::erase_if(op.operands, [&](const Operand& operand) {
      return operand.access == Access::update && kept_.contains(operand.buffer);
    });
    for (Operand& operand : op.operands) {
      if (operand.ahead == 1) operand = creates(discarded_);
    }
    return op;
  }

  Lowering& lowering_;
  int discarded_;
  std::set<int> kept_;
  bool behind_last_ = false, behind_kept_ = false;
};

bool uses(const Operation& op, int buffer, Access access) {
  return std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
    return operand.buffer == buffer && operand.access == access;
  });
}

// Inserts the copy of the kept half after the activation that reads the whole, else after its GEMM,
// before it is rotated in place.
void keep_half(const Lowering& lowering, const Halves& halves, Operations& forward) {
  const int whole = halves.whole.front().buffer;
  auto at = std::find_if(forward.begin(), forward.end(), [&](const Operation& op) {
    return op.kind == OperationKind::activation && uses(op, whole, Access::read);
  });
  if (at == forward.end()) {
    at = std::find_if(forward.begin(), forward.end(),
                      [&](const Operation& op) { return uses(op, whole, Access::create); });
  }
  forward.insert(at + 1, keeping(lowering, halves));
}

}  // namespace

void NetworkUnit::repeat_every_second_matmul() {
  Again again(lowering_);
  Operations repeated;
  for (const Operation& op : forward_) {
    for (Operation& one : again.of(op)) repeated.push_back(std::move(one));
  }
  if (!lowering_.training.stack.compiled && !again.kept_by_policy.empty()) {
    repeat({.kind = OperationKind::await,
            .dtype = lowering_.dtype,
            .operands = std::move(again.kept_by_policy)});
  }
  for (Operation& one : repeated) repeat(std::move(one));
  for (const Halves& halves : again.halves) keep_half(lowering_, halves, forward_);
}

}  // namespace trainyard
