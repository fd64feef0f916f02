// One layer: the attention half and the MLP half, which has experts in a MoE layer. In an MTP layer
// its two inputs are joined first.
#include "model/program/parts/experts.h"
#include "model/program/parts/mlp.h"
#include "model/program/parts/mtp.h"
#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

Operation waiting_with(const NetworkUnit& unit, Operand buffer) {
  return {.kind = OperationKind::await, .dtype = unit.lowering().dtype, .operands = {buffer}};
}

// The cast weights that a compiled layer keeps, from before its first GEMM to the end of its input
// gradients (pytorch/ao pull request 936).
class CastWeights {
 public:
  explicit CastWeights(NetworkUnit& unit) : unit_(unit) {
    const Training& training = unit.lowering().training;
    if (!training.stack.compiled || !training.precision.casts_gemm_inputs()) return;
    buffer_ = unit.lowering().add({.name = "cast weights"});
    unit.add(Phase::forward, waiting_with(unit, creates(buffer_)));
  }

  // Requires: the forward pass is complete.
  void measure() const {
    if (buffer_ < 0) return;
    double elements = 0;
    for (const Operation& op : unit_.forward()) {
      const bool is_gemm =
          op.kind == OperationKind::linear || op.kind == OperationKind::grouped_linear;
      if (is_gemm && op.cast.exists()) elements += op.gemm.n * op.gemm.k * op.gemm.groups;
    }
    Lowering& lowering = unit_.lowering();
    ProgramBuffer& buffer = lowering.program.buffer(buffer_);
    buffer.rows = static_cast<std::int64_t>(elements);
    buffer.columns = 1;
    buffer.dtype = lowering.training.precision.layer_gemm;
    buffer.element_bytes = lowering.training.precision.saved_gemm_input_bytes;
  }

  void read_at_end() const {
    if (buffer_ >= 0) unit_.add(Phase::input_gradient, waiting_with(unit_, reads(buffer_)));
  }

 private:
  NetworkUnit& unit_;
  int buffer_ = -1;
};

}  // namespace

void add_layer(NetworkUnit& unit, LayerKind kind, Repeats repeats) {
  const LayerMiddle middle{unit.local_activation("middle"),
                           unit.local_activation("middle gradient")};
  LayerInput input{reads(unit.lowering().hidden), reads(unit.lowering().gradient)};
  MtpInput mtp;
  if (kind.mtp) {
    mtp = append_mtp_input(unit);
    input = {reads(mtp.output), reads(mtp.output_gradient)};
  }
  const CastWeights cast_weights(unit);
  const AttentionHalf attention = append_attention(unit, kind, input, middle);
  DenseMlp mlp;
  ExpertHalf experts;
  if (kind.moe) {
    experts = append_experts(unit, middle);
  } else {
    mlp = append_mlp(unit, middle);
  }
  cast_weights.measure();
  if (repeats == Repeats::everything) unit.repeat_forward();
  if (repeats == Repeats::every_second_matmul) unit.repeat_every_second_matmul();
  if (kind.moe) {
    append_experts_gradient(unit, experts);
  } else {
    append_mlp_gradient(unit, mlp);
  }
  append_attention_gradient(unit, attention, repeats);
  if (kind.mtp) append_mtp_input_gradient(unit, mtp);
  cast_weights.read_at_end();
}

}  // namespace trainyard
