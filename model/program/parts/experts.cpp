// Routed experts (GShard, Lepikhin et al. 2021; DeepSeek-V3 report, 2024, §2.1.2). A router chooses
// the experts of each token; an all-to-all sends a copy of the token to each of them; ranks that
// share an expert (ETP) gather their rows; each expert's rows pass its MLP; and everything goes
// back the same way. Gates weight the rows inside the MLP, so that nothing of an expert's output is
// kept.
#include "model/program/parts/experts.h"

#include <cmath>
#include <utility>

#include "model/cost/messages/traffic.h"
#include "model/plan/layer_shard.h"

namespace trainyard {
namespace {

constexpr MlpNames kExperts = {
    .up_part = OperatorKind::expert_up,
    .activation_part = OperatorKind::expert_activation,
    .down_part = OperatorKind::expert_down,
    .up_weight = "expert up weight",
    .up_weight_gradient = "expert up weight gradient",
    .up_bias = "expert up bias",
    .up_bias_gradient = "expert up bias gradient",
    .down_weight = "expert down weight",
    .down_weight_gradient = "expert down weight gradient",
    .up = "expert up",
    .up_gradient = "expert up gradient",
    .product = "expert product",
    .product_gradient = "expert product gradient",
};

int capacity_of(const Lowering& lowering) {
  const double factor = lowering.plan.capacity_factor;
  if (factor == 0) return 0;
  return static_cast<int>(expert_capacity(static_cast<double>(lowering.local_tokens),
                                          lowering.model.experts_per_token, lowering.model.experts,
                                          factor));
}

double load_of(const Lowering& lowering) {
  return routed_load(lowering.model, layer_shard(lowering.plan),
                     static_cast<double>(lowering.local_tokens));
}

std::int64_t rounded_up(double rows) { return static_cast<std::int64_t>(std::ceil(rows - 1e-9)); }

RoutedRows routed_rows(const Lowering& lowering) {
  const Plan& plan = lowering.plan;
  const Transformer& model = lowering.model;
  const double sources = static_cast<double>(plan.expert_parallel) * plan.expert_tensor_parallel;
  RoutedRows rows;
  rows.copies = lowering.local_tokens * model.experts_per_token;
  rows.each = static_cast<double>(rows.copies) * sources / model.experts * load_of(lowering);
  rows.local = model.experts / plan.expert_parallel;
  rows.all = rounded_up(rows.each * rows.local);
  rows.received = rounded_up(rows.each * rows.local / plan.expert_tensor_parallel);
  rows.sorts = sources > 1 && rows.local > 1;
  return rows;
}

int routed(NetworkUnit& unit, std::string_view name, std::int64_t rows, std::int64_t columns) {
  const int buffer = unit.lowering().activation(name, rows, columns);
  unit.lowering().program.buffers.back().routed = true;
  return buffer;
}
int routed_numbers(NetworkUnit& unit, std::string_view name, std::int64_t rows) {
  const int buffer = unit.numbers(name, rows, 1);
  unit.lowering().program.buffers.back().routed = true;
  return buffer;
}

// ---- Who goes where ---------------------------------------------------------------------

void make_router(NetworkUnit& unit, ExpertHalf& half) {
  const Transformer& model = unit.model();
  const std::int64_t experts = model.experts;
  half.router = {.part = OperatorKind::router,
                 .weights = {unit.replicated(
                     {"router weight", "router weight gradient", experts, model.hidden_size})},
                 .biases = {},
                 .shape = {.m = static_cast<double>(unit.lowering().local_tokens),
                           .n = static_cast<double>(experts),
                           .k = static_cast<double>(model.hidden_size)},
                 .dtype = unit.lowering().training.precision.head_gemm};
  if (model.biases) {
    half.router.biases = {unit.replicated({"router bias", "router bias gradient", experts})};
  }
  if (model.router_correction_bias) {
    half.correction =
        unit.replicated({"router correction bias", "router correction bias gradient", experts});
  }
}

// Returns the gates of each token.
int append_route(NetworkUnit& unit, ExpertHalf& half) {
  const Lowering& lowering = unit.lowering();
  const std::int64_t chosen = lowering.model.experts_per_token;
  make_router(unit, half);
  half.logits = unit.numbers("router logits", lowering.local_tokens, lowering.model.experts);
  half.routing = unit.numbers("routing", lowering.local_tokens, chosen);
  const int gates = unit.numbers("gates", lowering.local_tokens, chosen);
  append_linear(unit, half.router, reads(half.branch.input), {half.logits});
  Operation route{.kind = OperationKind::route,
                  .part = OperatorKind::router,
                  .dtype = Dtype::fp32,
                  .capacity = capacity_of(lowering)};
  route.operands = {reads(half.logits)};
  if (half.correction.exists()) route.operands.push_back(reads(half.correction.weight));
  route.operands.push_back(creates(gates));
  route.operands.push_back(creates(half.routing));
  unit.add(Phase::forward, route);
  return gates;
}

// ---- On the way ----------------------------------------------------------------------------

Operation permutation(const NetworkUnit& unit, OperationKind kind) {
  return {.kind = kind, .part = OperatorKind::permutation, .dtype = unit.lowering().dtype};
}

// Elements of the copies of a rank's tokens, scaled by the load of the busiest expert rank.
double dispatched_elements(const Lowering& lowering) {
  return static_cast<double>(lowering.local_tokens) * lowering.model.experts_per_token *
         lowering.model.hidden_size * load_of(lowering);
}

struct Exchange {
  OperationKind kind{};
  Group group{};
  double element_bytes = 2;
};

// Elements of a message. A stack may send several copies for one rank as one (deduplicated
// dispatch), which is copied again there. Ranks that share an expert gather every row of it.
double message_elements(const Lowering& lowering, Group group) {
  const Plan& plan = lowering.plan;
  const double copies = dispatched_elements(lowering);
  if (group == Group::expert_tensor) return copies * plan.expert_tensor_parallel;
  if (!lowering.training.stack.deduplicated_dispatch) return copies;
  return copies * distinct_share(lowering.model, plan.expert_parallel);
}

void append_exchange(NetworkUnit& unit, Phase phase, const Exchange& exchange,
                     std::vector<Operand> operands) {
  const Lowering& lowering = unit.lowering();
  unit.add(phase,
           {.kind = exchange.kind,
            .stream = lowering.plan.overlap.expert_parallel ? ProgramStream::expert_parallel
                                                            : ProgramStream::compute,
            .dtype = exchange.element_bytes == 1 ? Dtype::fp8 : lowering.dtype,
            .group = exchange.group,
            .message = Bytes(message_elements(lowering, exchange.group) * exchange.element_bytes),
            .operands = std::move(operands)});
}

// A buffer of token rows, and one with a number for each row.
struct Rows {
  int rows = -1, numbers = -1;
};

bool spreads(const NetworkUnit& unit) { return unit.lowering().plan.expert_parallel > 1; }
bool shares(const NetworkUnit& unit) { return unit.lowering().plan.expert_tensor_parallel > 1; }

double activation_bytes(const NetworkUnit& unit) {
  return unit.lowering().training.precision.activation_bytes;
}

// Makes the copies of this rank's tokens, their gates, and the number of copies for each expert.
Rows append_copies(NetworkUnit& unit, ExpertHalf& half, int gates) {
  const std::int64_t hidden = unit.model().hidden_size;
  const Rows copies{routed(unit, "token copies", half.rows.copies, hidden),
                    routed_numbers(unit, "copy gates", half.rows.copies)};
  half.sent_counts = unit.numbers("rows by expert", 1, unit.model().experts);
  Operation permute = permutation(unit, OperationKind::permute);
  permute.operands = {reads(half.routing),  reads(half.branch.input), reads(gates),
                      creates(copies.rows), creates(copies.numbers),  creates(half.sent_counts)};
  unit.add(Phase::forward, permute);
  return copies;
}

Rows append_dispatch(NetworkUnit& unit, ExpertHalf& half, Rows copies) {
  half.received_counts = half.sent_counts;
  if (!spreads(unit)) return copies;
  const Plan& plan = unit.lowering().plan;
  half.received_counts =
      unit.numbers("received rows by expert", plan.expert_parallel, half.rows.local);
  const Rows received{routed(unit, "received tokens", half.rows.received, unit.model().hidden_size),
                      routed_numbers(unit, "received gates", half.rows.received)};
  append_exchange(
      unit, Phase::forward,
      {OperationKind::dispatch, Group::expert, unit.lowering().training.precision.dispatch_bytes},
      {reads(half.sent_counts), reads(copies.rows), reads(copies.numbers),
       creates(half.received_counts), creates(received.rows), creates(received.numbers)});
  return received;
}

// Gathers all rows for this rank's experts and sorts them by expert.
Rows append_grouping(NetworkUnit& unit, ExpertHalf& half, Rows received) {
  const Plan& plan = unit.lowering().plan;
  const std::int64_t hidden = unit.model().hidden_size;
  half.received_gates = received.numbers;
  half.counts = half.received_counts;
  Rows all = received;
  if (shares(unit)) {
    const ProgramBuffer counts = unit.lowering().program.buffer(half.received_counts);
    half.counts = unit.numbers("all rows by expert", counts.rows * plan.expert_tensor_parallel,
                               counts.columns);
    all = {routed(unit, "all tokens", half.rows.all, hidden),
           routed_numbers(unit, "all gates", half.rows.all)};
    append_exchange(unit, Phase::forward,
                    {OperationKind::all_gather, Group::expert_tensor,
                     unit.lowering().training.precision.dispatch_bytes},
                    {reads(half.received_counts), reads(received.rows), reads(received.numbers),
                     creates(half.counts), creates(all.rows), creates(all.numbers)});
  }
  if (!half.rows.sorts) return all;
  const Rows sorted{routed(unit, "expert input", half.rows.all, hidden),
                    routed_numbers(unit, "expert gates", half.rows.all)};
  Operation sort = permutation(unit, OperationKind::sort_rows);
  sort.operands = {reads(half.counts), reads(all.rows), reads(all.numbers), creates(sorted.rows),
                   creates(sorted.numbers)};
  unit.add(Phase::forward, sort);
  return sorted;
}

// ---- The experts ------------------------------------------------------------------------------

Operation grouped(const NetworkUnit& unit, const LinearPart& linear, OperationKind kind,
                  int counts) {
  Operation operation{.kind = kind,
                      .part = linear.part,
                      .dtype = linear.dtype,
                      .gemm = linear.shape,
                      .cast = weight_cast(unit, linear.dtype)};
  operation.operands = {reads(counts)};
  return operation;
}

void append_grouped_linear(NetworkUnit& unit, const LinearPart& linear, int counts, int input,
                           int output) {
  Operation op = grouped(unit, linear, OperationKind::grouped_linear, counts);
  op.operands.push_back(reads(input));
  for (const Parameter& weight : linear.weights) op.operands.push_back(reads(weight.weight));
  for (const Parameter& bias : linear.biases) op.operands.push_back(reads(bias.weight));
  op.operands.push_back(creates(output));
  unit.add(Phase::forward, op);
}

void append_grouped_gradients(NetworkUnit& unit, const LinearPart& linear, int counts, int input,
                              int output_gradient, int input_gradient) {
  const Operand cast = cast_gradients(unit, linear.part, {reads(output_gradient)}).front();
  Operation to_input = grouped(unit, linear, OperationKind::grouped_linear_input_gradient, counts);
  to_input.operands.push_back(cast);
  for (const Parameter& weight : linear.weights) to_input.operands.push_back(reads(weight.weight));
  to_input.operands.push_back(creates(input_gradient));
  unit.add(Phase::input_gradient, to_input);
  Operation to_weights =
      grouped(unit, linear, OperationKind::grouped_linear_weight_gradient, counts);
  to_weights.operands.push_back(reads(input));
  to_weights.operands.push_back(cast);
  for (const Parameter& w : linear.weights) to_weights.operands.push_back(updates(w.gradient));
  for (const Parameter& b : linear.biases) to_weights.operands.push_back(updates(b.gradient));
  unit.add(Phase::weight_gradient, to_weights);
}

// GEMMs of 8 and 4 bits need each expert's rows aligned. If the stack does so by copies, rows are
// copied to aligned places before the GEMMs and back after them (Megatron-Core's Fp8Padding and
// Fp8Unpadding). The padding is not counted.
int append_alignment(NetworkUnit& unit, Phase phase, const ExpertHalf& half, int rows,
                     std::string_view name) {
  const Training& training = unit.lowering().training;
  if (!training.stack.expert_padding || !training.precision.casts_gemm_inputs()) return rows;
  const int copied = routed(unit, name, half.rows.all, unit.model().hidden_size);
  Operation copy = permutation(unit, OperationKind::move);
  copy.operands = {reads(rows), creates(copied)};
  unit.add(phase, copy);
  return copied;
}

// Returns the rows that leave the experts, as they came in.
int append_expert_mlp(NetworkUnit& unit, ExpertHalf& half, Rows sorted) {
  const Plan& plan = unit.lowering().plan;
  half.mlp = make_mlp(
      unit, kExperts,
      {.ffn = {.whole = unit.model().expert_ffn_size, .shards = plan.expert_tensor_parallel},
       .rows = half.rows.each,
       .experts = half.rows.local});
  half.mlp.gates = sorted.numbers;
  half.mlp.up_output = routed(unit, kExperts.up, half.rows.all, up_width(half.mlp));
  half.mlp.product = routed(unit, kExperts.product, half.rows.all, product_width(half.mlp));
  const int output = routed(unit, "expert output", half.rows.all, unit.model().hidden_size);
  const int rows =
      append_alignment(unit, Phase::forward, half, sorted.rows, "aligned expert input");
  half.input = cast_input(unit, half.mlp.up.part, rows);
  append_grouped_linear(unit, half.mlp.up, half.counts, half.input, half.mlp.up_output);
  append_activation(unit, half.mlp);
  half.mlp.saved_product = cast_input(unit, half.mlp.down.part, half.mlp.product);
  append_grouped_linear(unit, half.mlp.down, half.counts, half.mlp.saved_product, output);
  return append_alignment(unit, Phase::forward, half, output, "expert output without gaps");
}

// ---- And back ------------------------------------------------------------------------------

struct ReturnNames {
  std::string_view unsorted, unsorted_numbers, scattered, scattered_numbers;
  std::string_view copies, copy_numbers;
};
constexpr ReturnNames kOutputs = {"unsorted expert output", "", "summed expert output", "",
                                  "returned copies",        ""};
constexpr ReturnNames kInputGradients = {
    "unsorted expert input gradient", "unsorted gate gradient", "summed expert input gradient",
    "summed gate gradient",           "copy gradient",          "copy gate gradient"};

// The same for numbers beside the rows, where there are any.
Rows routed_like(NetworkUnit& unit, Rows rows, std::string_view name, std::string_view numbers_name,
                 std::int64_t count) {
  return {routed(unit, name, count, unit.model().hidden_size),
          rows.numbers < 0 ? -1 : routed_numbers(unit, numbers_name, count)};
}

std::vector<Operand> with_rows(std::vector<Operand> operands, Rows from, Rows to) {
  operands.push_back(reads(from.rows));
  if (from.numbers >= 0) operands.push_back(reads(from.numbers));
  operands.push_back(creates(to.rows));
  if (to.numbers >= 0) operands.push_back(creates(to.numbers));
  return operands;
}

// Restores the order of the received rows and sums them over the ranks that share an expert.
Rows append_ungrouping(NetworkUnit& unit, Phase phase, const ExpertHalf& half, Rows rows,
                       const ReturnNames& names) {
  if (half.rows.sorts) {
    const Rows unsorted =
        routed_like(unit, rows, names.unsorted, names.unsorted_numbers, half.rows.all);
    Operation unsort = permutation(unit, OperationKind::unsort_rows);
    unsort.operands = with_rows({reads(half.counts)}, rows, unsorted);
    unit.add(phase, unsort);
    rows = unsorted;
  }
  if (!shares(unit)) return rows;
  const Rows summed =
      routed_like(unit, rows, names.scattered, names.scattered_numbers, half.rows.received);
  append_exchange(unit, phase,
                  {OperationKind::reduce_scatter, Group::expert_tensor, activation_bytes(unit)},
                  with_rows({reads(half.counts)}, rows, summed));
  return summed;
}

Rows append_combine(NetworkUnit& unit, Phase phase, const ExpertHalf& half, Rows rows,
                    const ReturnNames& names) {
  if (!spreads(unit)) return rows;
  const Rows copies = routed_like(unit, rows, names.copies, names.copy_numbers, half.rows.copies);
  append_exchange(unit, phase, {OperationKind::combine, Group::expert, activation_bytes(unit)},
                  with_rows({reads(half.sent_counts), reads(half.received_counts)}, rows, copies));
  return copies;
}

// Adds the bias of the row-parallel down projection once, after the sum over ranks.
void append_down_bias(NetworkUnit& unit, ExpertHalf& half, int rows) {
  if (!unit.model().biases) return;
  half.down_bias =
      unit.parameter({"expert down bias", "expert down bias gradient",
                      half.rows.local * std::int64_t{unit.model().hidden_size}, 1,
                      Cut{.experts = half.rows.local}},
                     shares(unit) ? PartialGradient::expert_tensor : PartialGradient::none);
  Operation bias{.kind = OperationKind::expert_bias, .dtype = unit.lowering().dtype};
  bias.operands = {reads(half.received_counts), reads(half.received_gates),
                   reads(half.down_bias.weight), updates(rows)};
  unit.add(Phase::forward, bias);
}

void append_unpermute(NetworkUnit& unit, Phase phase, const ExpertHalf& half, int copies,
                      const std::vector<int>& added, int sum) {
  Operation unpermute = permutation(unit, OperationKind::unpermute);
  unpermute.operands = {reads(half.routing), reads(copies)};
  for (const int buffer : added) unpermute.operands.push_back(reads(buffer));
  unpermute.operands.push_back(creates(sum));
  unit.add(phase, unpermute);
}

// ---- Gradients --------------------------------------------------------------------------------

// Sends the rows of the output gradient where the tokens were sent in the forward pass.
int append_gradient_dispatch(NetworkUnit& unit, const ExpertHalf& half, Operand gradient) {
  const std::int64_t hidden = unit.model().hidden_size;
  const int copies = routed(unit, "output gradient copies", half.rows.copies, hidden);
  Operation permute = permutation(unit, OperationKind::permute);
  permute.operands = {reads(half.routing), with_access(gradient, Access::read), creates(copies)};
  unit.add(Phase::input_gradient, permute);
  if (!spreads(unit)) return copies;
  const int received = routed(unit, "received output gradient", half.rows.received, hidden);
  append_exchange(
      unit, Phase::input_gradient, {OperationKind::dispatch, Group::expert, activation_bytes(unit)},
      {reads(half.sent_counts), reads(half.received_counts), reads(copies), creates(received)});
  return received;
}

int append_gradient_grouping(NetworkUnit& unit, const ExpertHalf& half, int received) {
  const std::int64_t hidden = unit.model().hidden_size;
  int all = received;
  if (shares(unit)) {
    all = routed(unit, "all output gradients", half.rows.all, hidden);
    append_exchange(unit, Phase::input_gradient,
                    {OperationKind::all_gather, Group::expert_tensor, activation_bytes(unit)},
                    {reads(received), creates(all)});
  }
  if (!half.rows.sorts) return all;
  const int sorted = routed(unit, "expert output gradient", half.rows.all, hidden);
  Operation sort = permutation(unit, OperationKind::sort_rows);
  sort.operands = {reads(half.counts), reads(all), creates(sorted)};
  unit.add(Phase::input_gradient, sort);
  return sorted;
}

// Returns the gradients of the experts' input and of the gates.
Rows append_expert_mlp_gradient(NetworkUnit& unit, const ExpertHalf& half, int sorted) {
  const MlpPart& mlp = half.mlp;
  const int product = routed(unit, kExperts.product_gradient, half.rows.all, product_width(mlp));
  const int up = routed(unit, kExperts.up_gradient, half.rows.all, up_width(mlp));
  const Rows gradient{
      routed(unit, "expert input gradient", half.rows.all, unit.model().hidden_size),
      routed_numbers(unit, "gate gradient", half.rows.all)};
  const int output_gradient =
      append_alignment(unit, Phase::input_gradient, half, sorted, "aligned expert output gradient");
  append_grouped_gradients(unit, mlp.down, half.counts, mlp.saved_product, output_gradient,
                           product);
  append_activation_gradient(unit, mlp, product, up, gradient.numbers);
  append_grouped_gradients(unit, mlp.up, half.counts, half.input, up, gradient.rows);
  return {append_alignment(unit, Phase::input_gradient, half, gradient.rows,
                           "expert input gradient without gaps"),
          gradient.numbers};
}

void append_down_bias_gradient(NetworkUnit& unit, const ExpertHalf& half, int received,
                               int gate_gradient) {
  if (!half.down_bias.exists()) return;
  Operation bias{.kind = OperationKind::expert_bias_gradient, .dtype = unit.lowering().dtype};
  bias.operands = {reads(half.received_counts),      reads(half.received_gates),
                   reads(half.down_bias.weight),     reads(received),
                   updates(half.down_bias.gradient), updates(gate_gradient)};
  unit.add(Phase::input_gradient, bias);
}

// Returns the gradient of the router's input.
int append_router_gradient(NetworkUnit& unit, const ExpertHalf& half, int gate_gradient) {
  const Lowering& lowering = unit.lowering();
  const int logits =
      unit.numbers("router logit gradient", lowering.local_tokens, lowering.model.experts);
  Operation route{
      .kind = OperationKind::route_gradient, .part = OperatorKind::router, .dtype = Dtype::fp32};
  route.operands = {reads(half.logits), reads(half.routing), reads(gate_gradient), creates(logits)};
  unit.add(Phase::input_gradient, route);
  const int input = unit.local_activation("router input gradient");
  append_input_gradient(unit, half.router, {reads(logits)}, creates(input));
  append_weight_gradient(unit, half.router, reads(half.branch.input), {reads(logits)});
  return input;
}

}  // namespace

ExpertHalf append_experts(NetworkUnit& unit, const LayerMiddle& middle) {
  ExpertHalf half{.branch = mlp_branch(unit, middle), .rows = routed_rows(unit.lowering())};
  half.branch.input = unit.local_activation(half.branch.names.input);
  append_norm(unit, half.branch.norm, half.branch.stream, half.branch.input);
  const int gates = append_route(unit, half);
  const Rows received = append_dispatch(unit, half, append_copies(unit, half, gates));
  // Shared experts run beside the dispatch.
  std::vector<int> added;
  if (unit.model().shared_experts > 0) added = {append_shared_experts(unit, half)};
  const Rows sorted = append_grouping(unit, half, received);
  const int output = append_expert_mlp(unit, half, sorted);
  const Rows summed = append_ungrouping(unit, Phase::forward, half, {output, -1}, kOutputs);
  append_down_bias(unit, half, summed.rows);
  const Rows copies = append_combine(unit, Phase::forward, half, summed, kOutputs);
  const int sum = unit.local_activation(half.branch.names.branch);
  append_unpermute(unit, Phase::forward, half, copies.rows, added, sum);
  append_residual(unit, half.branch, sum);
  return half;
}

void append_experts_gradient(NetworkUnit& unit, const ExpertHalf& half) {
  const Operand gradient = branch_gradient(unit, half.branch);
  const int received = append_gradient_dispatch(unit, half, gradient);
  std::vector<int> added;
  if (unit.model().shared_experts > 0) {
    added = {append_shared_experts_gradient(unit, half, gradient)};
  }
  const int sorted = append_gradient_grouping(unit, half, received);
  const Rows back =
      append_ungrouping(unit, Phase::input_gradient, half,
                        append_expert_mlp_gradient(unit, half, sorted), kInputGradients);
  append_down_bias_gradient(unit, half, received, back.numbers);
  const Rows copies = append_combine(unit, Phase::input_gradient, half, back, kInputGradients);
  added.push_back(append_router_gradient(unit, half, copies.numbers));
  const int sum = unit.local_activation("mlp input gradient of this rank");
  append_unpermute(unit, Phase::input_gradient, half, copies.rows, added, sum);
  finish_branch_gradient(unit, half.branch, sum);
}

}  // namespace trainyard
