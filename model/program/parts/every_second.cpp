// Selective recomputation as torchtitan means it: of the GEMMs of a layer, in the order of its
// modules, every second one is repeated, and so is all that is bound by memory; the outputs of the
// others and of attention are kept. Queries, keys, values and heads' output are the first four, of
// which keys and output are repeated. Of the MLP's first GEMM the first half is repeated, of its
// last one nothing, as the estimate counts them (torchtitan repeats the second half, which costs
// the same; of an MLP without a gate it keeps the first GEMM whole). What attention exchanged
// between context ranks is kept, and so are reduce-scatters; other exchanges are repeated, but for
// the last one, whose GEMM is kept.
#include <algorithm>
#include <optional>
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

// Keys alone, of queries, keys and values: the first rows of the weight that they share with the
// values.
Operation keys_of(const Lowering& lowering, const Operation& projection) {
  const std::vector<Operand> created = created_by(projection);
  const std::size_t read = projection.operands.size() - created.size();
  const bool biased = read > 3;  // input, two weights, two biases
  Operation keys = projection;
  keys.operands = {projection.operands[0], projection.operands[2]};
  if (biased) keys.operands.push_back(projection.operands[4]);
  keys.operands.push_back(created[1]);
  const ProgramBuffer& buffer =
      lowering.program.buffers[static_cast<std::size_t>(created[1].buffer)];
  keys.gemm.n = static_cast<double>(buffer.columns);
  return keys;
}

// The halves of what the MLP's first GEMM makes: one that is made again, one that is kept.
struct Halves {
  int whole = -1, again = -1, kept = -1;
};

Halves halves_of(Lowering& lowering, const Operation& up) {
  const int whole = created_by(up).front().buffer;
  const ProgramBuffer buffer = lowering.program.buffers[static_cast<std::size_t>(whole)];
  const std::int64_t first = buffer.columns / 2;
  return {whole, lowering.activation("mlp up again", buffer.rows, first),
          lowering.activation("mlp up kept", buffer.rows, buffer.columns - first)};
}

Operation first_half(const Lowering& lowering, Operation up, const Halves& halves) {
  up.operands.back() = creates(halves.again);
  up.gemm.n =
      static_cast<double>(lowering.program.buffers[static_cast<std::size_t>(halves.again)].columns);
  return up;
}

Operation columns_moved(const Lowering& lowering, std::vector<Operand> operands) {
  return {.kind = OperationKind::move, .dtype = lowering.dtype, .operands = std::move(operands)};
}

// What is repeated of a forward operation; nothing: its output is kept.
class Again {
 public:
  explicit Again(Lowering& lowering)
      : lowering_(lowering),
        discarded_(lowering.activation("output again", lowering.local_tokens,
                                       lowering.model.hidden_size)) {}

  Operations of(const Operation& op) {
    if (keeps(op)) {
      for (const Operand& operand : created_by(op)) kept_.insert(operand.buffer);
      return {};
    }
    if (is_gemm(op, OperatorKind::qkv_projection)) {
      const std::vector<Operand> created = created_by(op);
      kept_.insert({created[0].buffer, created[2].buffer});
      return {keys_of(lowering_, op)};
    }
    if (is_gemm(op, OperatorKind::mlp_up)) {
      halves = halves_of(lowering_, op);
      return {first_half(lowering_, op, *halves),
              columns_moved(lowering_,
                            {reads(halves->again), reads(halves->kept), creates(halves->whole)})};
    }
    return {repeated(op)};
  }

  std::optional<Halves> halves;

 private:
  bool keeps(const Operation& op) {
    if (is_gemm(op, OperatorKind::mlp_down)) behind_last_ = true;
    return op.part == OperatorKind::attention_core || op.group == Group::context ||
           op.kind == OperationKind::reduce_scatter || is_gemm(op, OperatorKind::mlp_down) ||
           (behind_last_ && is_communication(op.kind));
  }

  // What was turned in place and kept is not turned again.
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
  bool behind_last_ = false;
};

}  // namespace

void NetworkUnit::repeat_every_second_matmul() {
  Again again(lowering_);
  for (const Operation& op : forward_) {
    for (Operation& repeated : again.of(op)) repeat(std::move(repeated));
  }
  const auto activation = std::find_if(forward_.begin(), forward_.end(), [](const Operation& op) {
    return op.kind == OperationKind::activation;
  });
  forward_.insert(activation + 1, columns_moved(lowering_, {reads(again.halves->whole),
                                                            creates(again.halves->kept)}));
}

}  // namespace trainyard
