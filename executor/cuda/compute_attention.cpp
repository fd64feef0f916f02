#include "executor/cuda/compute.h"

namespace trainyard {
namespace {

void latent_rotary(const DeviceWork& w) {
  const LatentAttention& latent = *w.where.setting.model.latent_attention;
  const std::int64_t nope = latent.nope_head_dim, rope = latent.rope_head_dim;
  const View& queries = w.in_place(0);
  const RowPlaces places = row_places(w.where, queries.rows);
  const bool forward = w.operation.kind == OperationKind::latent_rotary;
  const double direction = forward ? 1 : -1;
  rotate(w.queue, queries, {nope, nope + rope, rope, queries.columns / (nope + rope)}, places,
         direction);
  if (!forward) {
    split_heads(w.queue, w.out(0), w.out(1), w.in(0));
    return rotate(w.queue, w.out(1), {0, rope, rope, 1}, places, direction);
  }
  const Scratch shared(w.queue, w.in(1).rows, rope, w.in(1).type);
  convert(w.queue, *shared, w.in(1));
  rotate(w.queue, *shared, {0, rope, rope, 1}, places, direction);
  join_heads(w.queue, w.out(0), w.in(0), *shared);
}

void rotary(const DeviceWork& w) {
  const std::int64_t width = w.where.setting.model.head_dim;
  const double direction = w.operation.kind == OperationKind::rotary ? 1 : -1;
  for (std::size_t i = 0; i < w.operands.in_place.size(); ++i) {
    const View& x = w.in_place(i);
    rotate(w.queue, x, {0, width, width, x.columns / width}, row_places(w.where, x.rows),
           direction);
  }
}

// tokens_in of executor/cpu/kernels/attention.cpp.
TokenOrder order_of(const Where& where, std::int64_t rows, int context) {
  const Plan& plan = where.setting.plan;
  const std::int64_t length = where.setting.training.sequence_length;
  const int ranks = plan.context_parallel;
  TokenOrder order;
  order.part = length / ranks;
  order.context = context;
  order.ranks = ranks;
  order.halves = ranks > 1 && plan.context_parallel_algorithm != ContextAlgorithm::ulysses &&
                 order.part % 2 == 0;
  if (ranks == 1 || rows < length * plan.micro_batch) return order;
  if (plan.context_parallel_algorithm == ContextAlgorithm::all_gather) {
    order.parts = ranks;
    order.part_rows = rows / ranks;
    return order;
  }
  order.part = length;
  order.context = 0;
  order.halves = false;
  return order;
}

AttentionPlan attention_plan(const DeviceWork& w) {
  const Setting& setting = w.where.setting;
  const Plan& plan = setting.plan;
  const AttentionShape& shape = w.operation.attention;
  const int ranks = plan.context_parallel, context = w.where.at.context;
  AttentionPlan of;
  of.queries = order_of(w.where, w.in(0).rows, context);
  of.keys = order_of(w.where, w.in(1).rows, (context + ranks - w.operation.step) % ranks);
  of.sequences = plan.micro_batch;
  of.heads = static_cast<int>(shape.heads);
  of.kv_heads = static_cast<int>(shape.kv_heads);
  of.query_width = static_cast<int>(shape.query_head_dim);
  of.value_width = static_cast<int>(shape.value_head_dim);
  of.window = shape.sliding ? setting.model.sliding_window : 0;
  of.log_sums = setting.training.stack.flash_attention || keeps_block_scores(w.where);
  of.length = setting.training.sequence_length;
  const bool dealt = ranks > 1 && plan.context_parallel_algorithm == ContextAlgorithm::ulysses;
  of.first_head = dealt ? context * of.heads : 0;
  if (setting.training.stack.flash_attention || !setting.training.stack.dropout) return of;
  of.dropout = dropout_of(w.operation, w.where, of.sequences * of.length);
  of.first_dropped_head =
      of.first_head + w.where.at.tensor * setting.model.attention_heads / plan.tensor_parallel;
  return of;
}

void forward(const DeviceWork& w) {
  const bool first = w.operation.kind == OperationKind::attention;
  const AttentionPlan plan = attention_plan(w);
  const bool blocks = keeps_block_scores(w.where);
  if (first && !plan.log_sums) {
    const std::int64_t columns = plan.heads * plan.length;
    w.memory.reshape(*w.operands.out[1], w.out(0).rows, columns, w.queue);
  }
  if (blocks) {
    const std::int64_t columns = plan.heads * plan.keys.part;
    w.memory.reshape(*w.operands.out.back(), w.in(0).rows, columns, w.queue);
  }
  const AttentionOperands of{.queries = w.in(0),
                             .keys = w.in(1),
                             .values = w.in(2),
                             .output = first ? w.out(0) : w.in_place(0),
                             .statistics = first ? w.out(1) : w.in_place(1),
                             .scores = blocks ? w.operands.out.back()->view : View{},
                             .sinks = w.in_if(3),
                             .first = first};
  if (!w.cudnn.forward(w.queue, plan, of)) attention(w.queue, plan, of);
}

// A block of a ring updates the gradients that it adds to, and creates the others.
void backward(const DeviceWork& w) {
  const bool blocks = keeps_block_scores(w.where);
  const AttentionOperands of{.queries = w.in(0),
                             .keys = w.in(1),
                             .values = w.in(2),
                             .output = w.in(3),
                             .statistics = w.in(4),
                             .scores = blocks ? w.in(6) : View{},
                             .sinks = w.in_if(blocks ? 7 : 6)};
  const std::size_t made = w.operands.out.size();
  AttentionGradients to{.output_gradient = w.in(5)};
  to.add_queries = made < 3;
  to.add_keys = made < 2;
  to.queries = to.add_queries ? w.in_place(0) : w.out(0);
  to.keys = to.add_keys ? w.in_place(1) : w.out(made - 2);
  to.values = to.add_keys ? w.in_place(2) : w.out(made - 1);
  if (of.sinks != nullptr) to.sinks = &w.operands.in_place.back()->view;
  const AttentionPlan plan = attention_plan(w);
  if (!w.cudnn.backward(w.queue, plan, of, to)) attention_gradient(w.queue, plan, of, to);
}

}  // namespace

void compute_attention(const DeviceWork& work) {
  switch (work.operation.kind) {
    case OperationKind::attention:
    case OperationKind::attention_step:
      return forward(work);
    case OperationKind::attention_gradient:
    case OperationKind::attention_gradient_step:
      return backward(work);
    case OperationKind::latent_rotary:
    case OperationKind::latent_rotary_gradient:
      return latent_rotary(work);
    default:
      return rotary(work);
  }
}

}  // namespace trainyard
