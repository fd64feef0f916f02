// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, §2.2), placed as in Megatron-Core: D more
// layers follow the last one. Each takes the state of the layer before it and the embedding of the
// token that that layer was to predict; the head runs after all of them. The two inputs are normed,
// put side by side and projected to one by a column-parallel GEMM, whose columns are then gathered
// (no stack that copies what it gathers has MTP). The embeddings of all depths are looked up
// together.
#include "model/program/parts/mtp.h"

namespace trainyard {
namespace {

constexpr NormNames kStateNormNames = {"mtp state norm scale", "mtp state norm scale gradient",
                                       "mtp state norm shift", "mtp state norm shift gradient"};
constexpr NormNames kEmbeddingNormNames = {
    "mtp embedding norm scale", "mtp embedding norm scale gradient", "mtp embedding norm shift",
    "mtp embedding norm shift gradient"};

LinearPart projection_of(NetworkUnit& unit) {
  const std::int64_t hidden = unit.model().hidden_size;
  const Segment rows = split(unit.lowering(), hidden);
  LinearPart linear{.part = OperatorKind::mtp_projection,
                    .weights = {},
                    .biases = {},
                    .shape = gemm_shape(unit.lowering(), part_of(rows), 2 * hidden),
                    .dtype = unit.lowering().training.precision.layer_gemm};
  linear.weights = {unit.parameter({"mtp projection weight", "mtp projection weight gradient",
                                    part_of(rows), 2 * hidden, Cut{CutAxis::rows, {rows}}},
                                   PartialGradient::none)};
  return linear;
}

Operation mtp_operation(const NetworkUnit& unit, OperationKind kind) {
  return {.kind = kind,
          .part = OperatorKind::mtp_concatenation,
          .dtype = unit.lowering().dtype,
          .operands = {}};
}

// Gives a part of a tensor another name, without a copy.
Operation renaming(const NetworkUnit& unit, std::vector<Operand> operands) {
  return {
      .kind = OperationKind::move, .dtype = unit.lowering().dtype, .operands = std::move(operands)};
}

// Takes this tensor-parallel rank's part of a tensor that all ranks have whole.
void append_own_part(NetworkUnit& unit, Phase phase, Operand whole, int part) {
  Operation move = renaming(unit, {whole, creates(part)});
  move.group = Group::tensor;
  move.shards = unit.lowering().plan.tensor_parallel;
  unit.add(phase, std::move(move));
}

// Gathers the columns of all ranks, and takes this rank's rows under sequence parallelism.
int rows_of_columns(NetworkUnit& unit, int columns) {
  const Plan& plan = unit.lowering().plan;
  if (plan.tensor_parallel == 1) return columns;
  const int whole = unit.gathered_columns(Phase::forward, columns, "mtp projected");
  if (!plan.sequence_parallel) return whole;
  const int rows = unit.local_activation("mtp output");
  append_own_part(unit, Phase::forward, reads(whole), rows);
  return rows;
}

Operand own_columns(NetworkUnit& unit, Operand whole) {
  const Lowering& lowering = unit.lowering();
  if (lowering.plan.tensor_parallel == 1) return whole;
  const Segment columns = split(lowering, unit.model().hidden_size);
  const int own = unit.whole_activation("mtp output gradient columns", part_of(columns));
  append_own_part(unit, Phase::input_gradient, whole, own);
  return reads(own);
}

}  // namespace

MtpInput append_mtp_input(NetworkUnit& unit) {
  Lowering& lowering = unit.lowering();
  MtpInput input{
      .embedding_norm = make_norm(unit, OperatorKind::mtp_embedding_norm, kEmbeddingNormNames),
      .state_norm = make_norm(unit, OperatorKind::mtp_state_norm, kStateNormNames),
      .projection = projection_of(unit)};
  const int embedding = unit.local_activation("mtp normed embedding");
  const int state = unit.local_activation("mtp normed state");
  const int both = lowering.activation("mtp input", lowering.local_tokens,
                                       std::int64_t{2} * unit.model().hidden_size);
  append_norm(unit, input.embedding_norm, reads(lowering.embedded), embedding);
  append_norm(unit, input.state_norm, reads(lowering.hidden), state);
  Operation concatenation = mtp_operation(unit, OperationKind::move);
  concatenation.operands = {reads(embedding), reads(state), creates(both)};
  unit.add(Phase::forward, std::move(concatenation));
  unit.set_plain_collectives(true);
  const GemmInput read = gathered_input(unit, input.projection.part, both, "mtp gathered");
  unit.set_plain_collectives(false);
  input.saved = read.saved;
  const int columns = unit.whole_activation("mtp projected columns",
                                            static_cast<std::int64_t>(input.projection.shape.n));
  append_linear(unit, input.projection, read.read, {columns});
  input.output = rows_of_columns(unit, columns);
  input.output_gradient = unit.local_activation("mtp output gradient");
  return input;
}

void append_mtp_input_gradient(NetworkUnit& unit, const MtpInput& input) {
  Lowering& lowering = unit.lowering();
  const std::int64_t width = std::int64_t{2} * unit.model().hidden_size;
  unit.set_plain_collectives(true);
  const Operand whole =
      unit.gathered(Phase::input_gradient, reads(input.output_gradient), "mtp gathered gradient");
  const std::vector<Operand> columns =
      cast_gradients(unit, input.projection.part, {own_columns(unit, whole)});
  const Operand again = unit.gathered(Phase::weight_gradient, reads(input.saved), "mtp regathered");
  const int partial = unit.whole_activation("mtp input gradient", width);
  append_input_gradient(unit, input.projection, columns, creates(partial));
  const int scattered =
      lowering.plan.sequence_parallel
          ? lowering.activation("mtp input gradient", lowering.local_tokens, width)
          : partial;
  const Operand reduced = unit.reduced(Phase::input_gradient, reads(partial), reads(scattered));
  unit.set_plain_collectives(false);
  append_weight_gradient(unit, input.projection, again, columns);

  const int embedding = unit.local_activation("mtp normed embedding gradient");
  const int state = unit.local_activation("mtp normed state gradient");
  unit.add(Phase::input_gradient, renaming(unit, {reduced, creates(embedding), creates(state)}));
  append_norm_gradient(unit, input.embedding_norm, reads(lowering.embedded), embedding,
                       reads(lowering.embedded_gradient));
  const int through_norm = unit.local_activation("mtp state gradient");
  append_norm_gradient(unit, input.state_norm, reads(lowering.hidden), state, reads(through_norm));
  Operation sum = mtp_operation(unit, OperationKind::accumulate);
  sum.operands = {reads(through_norm), updates(lowering.gradient)};
  unit.add(Phase::input_gradient, std::move(sum));
}

void add_mtp_embedding(NetworkUnit& unit, Parameter table) {
  const Lowering& lowering = unit.lowering();
  for (int depth = 0; depth < unit.model().mtp_layers; ++depth) {
    append_lookup(unit, table,
                  {.ahead = depth + 1,
                   .into = reads(lowering.embedded, depth),
                   .gradient = reads(lowering.embedded_gradient, depth)});
  }
}

}  // namespace trainyard
