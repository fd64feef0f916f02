// Final norm, output head over this rank's part of the vocabulary, and the cross-entropy of logits
// that no rank has whole (Megatron-LM, Shoeybi et al. 2019, §3). The loss is the mean over the
// global batch, so gradients add up over micro-batches and data-parallel ranks.
#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

constexpr NormNames kFinalNormNames = {"final norm scale", "final norm scale gradient",
                                       "final norm shift", "final norm shift gradient"};

// fp32, `columns` numbers a token.
int statistics(NetworkUnit& unit, std::string_view name, int columns) {
  return unit.numbers(name, unit.lowering().tokens, columns);
}

int loss_buffer(NetworkUnit& unit) {
  ProgramBuffer buffer{.name = "loss", .role = BufferRole::scalar, .scope = Scope::stage};
  buffer.rows = 1;
  buffer.columns = 1;
  buffer.dtype = Dtype::fp32;
  buffer.element_bytes = 4;
  return unit.lowering().add(buffer);
}

// The mean over D depths of what MTP predicts, times this, is added to the loss of the next token:
// DeepSeek-V3 (arXiv 2412.19437), eq. 25, whose λ was 0.3 for 10 T tokens and 0.1 for the rest
// (§4.2); 0.1 is Megatron-Core's default too (`mtp_loss_scaling_factor`).
constexpr double kMtpLossWeight = 0.1;

double loss_weight(const Transformer& model, int depth) {
  return depth == 0 ? 1 : kMtpLossWeight / model.mtp_layers;
}

struct CrossEntropy {
  int logits = -1, gradient = -1, labels = -1, largest = -1;
  std::vector<int> sums;  // Σ exp and the label's logit; one buffer if they are reduced together
  double weight = 1;
};

CrossEntropy make_cross_entropy(NetworkUnit& unit, std::int64_t columns, int depth) {
  const Training& training = unit.lowering().training;
  CrossEntropy entropy{.weight = loss_weight(unit.model(), depth)};
  ProgramBuffer logits{.name = "logits",
                       .rows = unit.lowering().tokens,
                       .columns = columns,
                       .dtype = unit.lowering().dtype};
  ProgramBuffer gradient = logits;
  gradient.name = "logit gradient";
  gradient.element_bytes = logit_gradient_bytes(training);
  // All memory that the stack keeps for a logit, except its gradient, is counted with the logits.
  logits.element_bytes = saved_logit_bytes(training.stack, unit.lowering().plan.tensor_parallel) -
                         gradient.element_bytes;
  const bool kept =
      training.stack.pipeline_keeps_logits && unit.lowering().plan.pipeline_parallel > 1;
  if (kept) logits.kept_bytes = training.precision.activation_bytes;
  entropy.logits = unit.lowering().add(logits);
  entropy.gradient = unit.lowering().add(gradient);
  entropy.labels = token_buffer(unit, "labels", depth + 1);
  entropy.largest = statistics(unit, "largest logit", 1);
  if (training.stack.fused_cross_entropy) {
    entropy.sums = {statistics(unit, "exponential sum and label logit", 2)};
  } else {
    entropy.sums = {statistics(unit, "exponential sum", 1), statistics(unit, "label logit", 1)};
  }
  return entropy;
}

Operation entropy_operation(OperationKind kind) {
  return {.kind = kind, .part = OperatorKind::cross_entropy, .dtype = Dtype::fp32};
}

void append_cross_entropy(NetworkUnit& unit, const CrossEntropy& entropy) {
  Operation largest = entropy_operation(OperationKind::cross_entropy_max);
  largest.operands = {reads(entropy.logits), creates(entropy.largest)};
  unit.add(Phase::forward, largest);
  unit.all_reduced(Phase::forward, entropy.largest, Reduction::max);

  Operation sum = entropy_operation(OperationKind::cross_entropy_sum);
  sum.operands = {reads(entropy.logits), reads(entropy.largest), reads(entropy.labels)};
  for (const int buffer : entropy.sums) sum.operands.push_back(creates(buffer));
  unit.add(Phase::forward, sum);
  for (const int buffer : entropy.sums) unit.all_reduced(Phase::forward, buffer, Reduction::sum);

  Operation loss = entropy_operation(OperationKind::cross_entropy_loss);
  loss.loss_weight = entropy.weight;
  loss.operands = {reads(entropy.largest)};
  for (const int buffer : entropy.sums) loss.operands.push_back(reads(buffer));
  loss.operands.push_back(updates(loss_buffer(unit)));
  unit.add(Phase::forward, loss);
}

void append_cross_entropy_gradient(NetworkUnit& unit, const CrossEntropy& entropy) {
  Operation gradient = entropy_operation(OperationKind::cross_entropy_gradient);
  gradient.loss_weight = entropy.weight;
  gradient.operands = {reads(entropy.largest)};
  for (const int buffer : entropy.sums) gradient.operands.push_back(reads(buffer));
  gradient.operands.push_back(reads(entropy.labels));
  gradient.operands.push_back(reads(entropy.logits));
  gradient.operands.push_back(creates(entropy.gradient));
  unit.add(Phase::input_gradient, gradient);
}

// The logits of one predicted token and their loss: the next token, or one further ahead (MTP).
struct Prediction {
  Operand stream, gradient;
  NormPart norm;
  CrossEntropy entropy;
  int input = -1;
  int gathered = -1;
};

Prediction append_prediction(NetworkUnit& unit, const LinearPart& head, int depth) {
  const Lowering& lowering = unit.lowering();
  Prediction prediction{
      .stream = reads(lowering.hidden, depth),
      .gradient = reads(lowering.gradient, depth),
      .norm = make_norm(unit, OperatorKind::final_norm, kFinalNormNames, depth),
      .entropy = make_cross_entropy(unit, static_cast<std::int64_t>(head.shape.n), depth),
      .input = unit.local_activation("head input")};
  append_norm(unit, prediction.norm, prediction.stream, prediction.input);
  const Operand gathered = unit.gathered(Phase::forward, reads(prediction.input), "head gathered");
  prediction.gathered = gathered.buffer;
  append_linear(unit, head, gathered, {prediction.entropy.logits});
  append_cross_entropy(unit, prediction.entropy);
  return prediction;
}

void append_prediction_gradient(NetworkUnit& unit, const LinearPart& head,
                                const Prediction& prediction) {
  const Operand of_logits = reads(prediction.entropy.gradient);
  append_cross_entropy_gradient(unit, prediction.entropy);
  const Operand again =
      unit.lowering().training.stack.keeps_gathered_inputs
          ? reads(prediction.gathered)
          : unit.gathered(Phase::weight_gradient, reads(prediction.input), "head regathered");
  const int partial = unit.whole_activation("head input gradient", unit.model().hidden_size);
  append_input_gradient(unit, head, {of_logits}, creates(partial));
  const int reduced = unit.reduced(Phase::input_gradient, partial, "head input gradient");
  append_weight_gradient(unit, head, again, {of_logits});
  append_norm_gradient(unit, prediction.norm, prediction.stream, reduced, prediction.gradient);
}

}  // namespace

void add_head(NetworkUnit& unit, Parameter table) {
  const Lowering& lowering = unit.lowering();
  const ProgramBuffer& matrix = lowering.program.buffer(table.weight);
  const LinearPart head{.part = OperatorKind::output_head,
                        .weights = {table},
                        .biases = {},
                        .shape = gemm_shape(lowering, matrix.rows, matrix.columns),
                        .dtype = lowering.training.precision.head_gemm};
  // The furthest token comes first, as in Megatron-Core; backward in reverse order.
  std::vector<Prediction> predictions;
  for (int depth = unit.model().mtp_layers; depth >= 0; --depth) {
    predictions.push_back(append_prediction(unit, head, depth));
  }
  for (std::size_t i = predictions.size(); i-- > 0;) {
    append_prediction_gradient(unit, head, predictions[i]);
  }
}

}  // namespace trainyard
