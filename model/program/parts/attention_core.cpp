// The attention core: on one rank, or over context-parallel ranks that each have a part of the
// sequence. Ring (Liu et al. 2023): blocks of keys and values go round while the core works on the
// block before; in backward the gradients follow their blocks and come home at the end. All-gather:
// the keys and values of all ranks are gathered, again in backward, and their gradients are
// scattered. Ulysses (Jacobs et al. 2023): every rank gets all tokens of some of the heads.
#include <algorithm>
#include <array>
#include <utility>

#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

using Operands = std::vector<Operand>;

Operation core_operation(const NetworkUnit& unit, const AttentionHalf& half, OperationKind kind) {
  return {.kind = kind,
          .part = OperatorKind::attention_core,
          .dtype = unit.lowering().training.precision.attention,
          .attention = half.shape};
}

// A buffer with a number for each query, head and key.
int score_buffer(NetworkUnit& unit, std::string_view name, const AttentionShape& shape) {
  const auto columns =
      static_cast<std::int64_t>(shape.heads) * static_cast<std::int64_t>(shape.keys);
  const int scores = unit.lowering().activation(
      name, static_cast<std::int64_t>(shape.batch * shape.queries), columns);
  // With dropout: the probabilities, the mask and what dropout leaves of them.
  double& bytes = unit.lowering().program.buffers.back().element_bytes;
  if (unit.drops()) bytes = 2 * bytes + 1;
  return scores;
}

// Scratch memory of an unfused core's backward kernel: the gradients of the scores after and before
// dropout, and the input matrix of the scores' GEMM. It exists only while the kernel runs
// (Megatron-LM: fused_kernels/scaled_masked_softmax_cuda.cu, whose backward pass writes over its
// gradient; core/transformer/dot_product_attention.py, matmul_input_buffer).
class ScoreGradients {
 public:
  ScoreGradients(NetworkUnit& unit, const AttentionShape& shape) : unit_(unit) {
    if (unit.lowering().training.stack.flash_attention) return;
    const auto columns =
        static_cast<std::int64_t>(shape.heads) * static_cast<std::int64_t>(shape.keys);
    buffer_ = unit.lowering().activation(
        "score gradients", static_cast<std::int64_t>(shape.batch * shape.queries), 3 * columns);
    wait_with(creates(buffer_));
  }
  void end() const {
    if (buffer_ >= 0) wait_with(reads(buffer_));
  }

 private:
  void wait_with(Operand operand) const {
    unit_.add(
        Phase::input_gradient,
        {.kind = OperationKind::await, .dtype = unit_.lowering().dtype, .operands = {operand}});
  }

  NetworkUnit& unit_;
  int buffer_ = -1;
};

bool is_ring(const Plan& plan) {
  return plan.context_parallel > 1 && plan.context_parallel_algorithm == ContextAlgorithm::ring;
}

int log_sum_buffer(NetworkUnit& unit, const AttentionShape& shape) {
  return unit.numbers("log-sum-exp", static_cast<std::int64_t>(shape.batch * shape.queries),
                      static_cast<std::int64_t>(shape.heads));
}

// A ring merges its blocks by the log-sum-exp of their rows, whether attention is fused or not.
int statistics_buffer(NetworkUnit& unit, const AttentionShape& shape) {
  const Lowering& lowering = unit.lowering();
  return lowering.training.stack.flash_attention || is_ring(lowering.plan)
             ? log_sum_buffer(unit, shape)
             : score_buffer(unit, "probabilities", shape);
}

Operands read_heads(const HeadBuffers& heads) {
  return {reads(heads.queries), reads(heads.keys), reads(heads.values)};
}

// Queries, keys, values, output, log-sum-exp, output gradient.
Operands read_for_gradient(const AttentionHalf& half, const HeadBuffers& heads,
                           int output_gradient) {
  Operands operands = read_heads(heads);
  for (const int buffer : {half.core_output, half.statistics, output_gradient}) {
    operands.push_back(reads(buffer));
  }
  return operands;
}

// Sinks count once for each query: in a ring, with the block of the rank's own keys.
void append_sinks(const AttentionHalf& half, Operands& operands) {
  if (half.sinks.exists()) operands.push_back(reads(half.sinks.weight));
}
void append_sink_gradients(const AttentionHalf& half, Operands& operands) {
  if (half.sinks.exists()) operands.push_back(updates(half.sinks.gradient));
}

struct HeadNames {
  std::string_view queries, keys, values;
};
constexpr HeadNames kGradients = {"query gradient", "key gradient", "value gradient"};

HeadBuffers make_heads(NetworkUnit& unit, const HeadNames& names, std::int64_t rows,
                       std::int64_t queries, std::int64_t keys, std::int64_t values) {
  Lowering& lowering = unit.lowering();
  return {lowering.activation(names.queries, rows, queries),
          lowering.activation(names.keys, rows, keys),
          lowering.activation(names.values, rows, values)};
}

HeadBuffers make_gradients(NetworkUnit& unit, const AttentionHalf& half) {
  return make_heads(unit, kGradients, unit.lowering().tokens, part_of(half.queries_cut),
                    part_of(half.keys_cut), part_of(half.values_cut));
}

Bytes bytes_of(const Lowering& lowering, int buffer) {
  return lowering.program.buffer(buffer).bytes();
}

void append_context_collective(NetworkUnit& unit, Phase phase, OperationKind kind, Bytes message,
                               Operands operands, const AttentionShape& heads = {}) {
  const Lowering& lowering = unit.lowering();
  unit.add(phase,
           {.kind = kind,
            .stream = lowering.plan.overlap.context_parallel ? ProgramStream::context_parallel
                                                             : ProgramStream::compute,
            .dtype = lowering.dtype,
            .attention = heads,
            .group = Group::context,
            .message = message,
            .operands = std::move(operands)});
}

// ---- On one rank, or with the keys and values of all ---------------------------------------

void append_attention_core(NetworkUnit& unit, const AttentionHalf& half, const HeadBuffers& heads) {
  Operation core = core_operation(unit, half, OperationKind::attention);
  core.operands = read_heads(heads);
  append_sinks(half, core.operands);
  core.operands.push_back(creates(half.core_output));
  core.operands.push_back(creates(half.statistics));
  unit.add(Phase::forward, core);
}

void append_attention_core_gradient(NetworkUnit& unit, const AttentionHalf& half,
                                    const HeadBuffers& heads, int output_gradient,
                                    const HeadBuffers& gradients) {
  Operation core = core_operation(unit, half, OperationKind::attention_gradient);
  core.operands = read_for_gradient(half, heads, output_gradient);
  append_sinks(half, core.operands);
  for (const int gradient : {gradients.queries, gradients.keys, gradients.values}) {
    core.operands.push_back(creates(gradient));
  }
  append_sink_gradients(half, core.operands);
  const ScoreGradients beside(unit, half.shape);
  unit.add(Phase::input_gradient, core);
  beside.end();
}

// Recomputes the scores from `heads`, the inputs of the forward pass, which kept its output.
void repeat_core(NetworkUnit& unit, const AttentionHalf& half, const HeadBuffers& heads) {
  Operation core = core_operation(unit, half, OperationKind::attention);
  const ProgramBuffer first = unit.lowering().program.buffer(half.core_output);
  const int output =
      unit.lowering().activation("attention context again", first.rows, first.columns);
  core.operands = read_heads(heads);
  append_sinks(half, core.operands);
  core.operands.push_back(creates(output));
  core.operands.push_back(creates(half.statistics));
  unit.repeat(core);
}

HeadBuffers append_gather(NetworkUnit& unit, Phase phase, const AttentionHalf& half) {
  const Lowering& lowering = unit.lowering();
  const std::int64_t rows = lowering.tokens * lowering.plan.context_parallel;
  const HeadBuffers whole = {
      half.heads.queries, unit.lowering().activation("all keys", rows, part_of(half.keys_cut)),
      unit.lowering().activation("all values", rows, part_of(half.values_cut))};
  append_context_collective(unit, phase, OperationKind::all_gather,
                            bytes_of(lowering, whole.keys) + bytes_of(lowering, whole.values),
                            {reads(half.heads.keys), reads(half.heads.values), creates(whole.keys),
                             creates(whole.values)});
  return whole;
}

HeadBuffers append_gathered_gradient(NetworkUnit& unit, const AttentionHalf& half,
                                     int context_gradient, bool repeats_core) {
  const HeadBuffers heads = append_gather(unit, Phase::input_gradient, half);
  if (repeats_core) repeat_core(unit, half, heads);
  const HeadBuffers gradients = make_gradients(unit, half);
  const std::int64_t rows = unit.lowering().tokens * unit.lowering().plan.context_parallel;
  const HeadBuffers all = {
      gradients.queries,
      unit.lowering().activation("all key gradients", rows, part_of(half.keys_cut)),
      unit.lowering().activation("all value gradients", rows, part_of(half.values_cut))};
  append_attention_core_gradient(unit, half, heads, context_gradient, all);
  append_context_collective(
      unit, Phase::input_gradient, OperationKind::reduce_scatter,
      bytes_of(unit.lowering(), all.keys) + bytes_of(unit.lowering(), all.values),
      {reads(all.keys), reads(all.values), creates(gradients.keys), creates(gradients.values)});
  return gradients;
}

// ---- Ring ---------------------------------------------------------------------------------

RingPlaces ring_places(NetworkUnit& unit, const AttentionHalf& half, const HeadNames& first,
                       const HeadNames& second) {
  RingPlaces places;
  for (const auto& [place, names] : {std::pair{0, first}, std::pair{1, second}}) {
    places[static_cast<std::size_t>(place)] = {
        half.heads.queries, unit.whole_activation(names.keys, part_of(half.keys_cut)),
        unit.whole_activation(names.values, part_of(half.values_cut))};
  }
  return places;
}

struct PassedOn {
  OperationKind way{};
  Phase phase{};
};
void pass(NetworkUnit& unit, PassedOn how, const HeadBuffers& from, const HeadBuffers& to) {
  const Lowering& lowering = unit.lowering();
  append_context_collective(
      unit, how.phase, how.way, bytes_of(lowering, from.keys) + bytes_of(lowering, from.values),
      {reads(from.keys), reads(from.values), creates(to.keys), creates(to.values)});
}

// An operation on one block of the ring, which has 1/c of the keys.
Operation ring_operation(const NetworkUnit& unit, const AttentionHalf& half, OperationKind kind,
                         int step) {
  Operation core = core_operation(unit, half, kind);
  core.attention.keys /= unit.lowering().plan.context_parallel;
  core.step = step;
  return core;
}

const HeadBuffers& block_at(const AttentionHalf& half, const RingPlaces& places, int step) {
  return step == 0 ? half.heads : places[static_cast<std::size_t>(step % 2)];
}

int scores_of(const AttentionHalf& half, int step) {
  return half.block_scores[static_cast<std::size_t>(step)];
}

void append_ring(NetworkUnit& unit, AttentionHalf& half) {
  const int ranks = unit.lowering().plan.context_parallel;
  half.ring =
      ring_places(unit, half, {"", "even keys", "even values"}, {"", "odd keys", "odd values"});
  if (!unit.lowering().training.stack.flash_attention) {
    AttentionShape block = half.shape;
    block.keys /= ranks;
    for (int step = 0; step < ranks; ++step) {
      half.block_scores.push_back(score_buffer(unit, "block scores", block));
    }
  }
  for (int step = 0; step < ranks; ++step) {
    const HeadBuffers& block = block_at(half, half.ring, step);
    if (step + 1 < ranks) {
      pass(unit, {OperationKind::pass_on, Phase::forward}, block,
           block_at(half, half.ring, step + 1));
    }
    Operation core = ring_operation(
        unit, half, step == 0 ? OperationKind::attention : OperationKind::attention_step, step);
    core.operands = read_heads(block);
    if (step == 0) append_sinks(half, core.operands);
    const Access access = step == 0 ? Access::create : Access::update;
    core.operands.push_back(with_access(reads(half.core_output), access));
    core.operands.push_back(with_access(reads(half.statistics), access));
    if (!half.block_scores.empty()) core.operands.push_back(creates(scores_of(half, step)));
    unit.add(Phase::forward, core);
  }
}

// Recomputes the scores of a block that were not kept, without merging its output.
void repeat_block(NetworkUnit& unit, const AttentionHalf& half, int step,
                  const HeadBuffers& block) {
  Operation core = ring_operation(unit, half, OperationKind::attention, step);
  const ProgramBuffer first = unit.lowering().program.buffer(half.core_output);
  const int output = unit.lowering().activation("block context again", first.rows, first.columns);
  core.operands = read_heads(block);
  core.operands.push_back(creates(output));
  core.operands.push_back(creates(log_sum_buffer(unit, half.shape)));
  core.operands.push_back(creates(scores_of(half, step)));
  unit.repeat(core);
}

// One block of the backward ring. `first`: it is the first block that the pass works on.
struct BlockAtWork {
  int step = 0;
  bool first = false;
  HeadBuffers block;
  HeadBuffers into;  // its own key and value gradients
};
void append_block_gradient(NetworkUnit& unit, const AttentionHalf& half, int context_gradient,
                           const BlockAtWork& at) {
  Operation core = ring_operation(
      unit, half,
      at.first ? OperationKind::attention_gradient : OperationKind::attention_gradient_step,
      at.step);
  core.operands = read_for_gradient(half, at.block, context_gradient);
  if (!half.block_scores.empty()) core.operands.push_back(reads(scores_of(half, at.step)));
  if (at.step == 0) append_sinks(half, core.operands);
  core.operands.push_back(
      with_access(reads(at.into.queries), at.first ? Access::create : Access::update));
  core.operands.push_back(creates(at.into.keys));
  core.operands.push_back(creates(at.into.values));
  if (at.step == 0) append_sink_gradients(half, core.operands);
  const ScoreGradients beside(unit, core.attention);
  unit.add(Phase::input_gradient, core);
  beside.end();
}

// Adds a block's gradients to the sums that travel with its keys and values.
void append_block_addition(NetworkUnit& unit, const HeadBuffers& block, const HeadBuffers& sum) {
  Operation addition{.kind = OperationKind::accumulate, .dtype = unit.lowering().dtype};
  addition.operands = {reads(block.keys), reads(block.values), updates(sum.keys),
                       updates(sum.values)};
  unit.add(Phase::input_gradient, addition);
}

// The gradients of a backward ring: this rank's own; the sums of key and value gradients that go
// round, in two places in turn; and those of the current block.
struct RingGradients {
  HeadBuffers own;
  RingPlaces following;
  HeadBuffers of_block;

  const HeadBuffers& place(int step) const { return following[static_cast<std::size_t>(step % 2)]; }
};
RingGradients ring_gradients(NetworkUnit& unit, const AttentionHalf& half) {
  const HeadBuffers own = make_gradients(unit, half);
  RingGradients gradients{
      own,
      ring_places(unit, half, {"", "even key gradient", "even value gradient"},
                  {"", "odd key gradient", "odd value gradient"}),
      {own.queries, unit.whole_activation("block key gradient", part_of(half.keys_cut)),
       unit.whole_activation("block value gradient", part_of(half.values_cut))}};
  for (HeadBuffers& place : gradients.following) place.queries = own.queries;
  return gradients;
}

// Runs the ring backwards, from the block that the forward ring ended with to the rank's own: the
// next block comes in and the sums so far go out while the core works on the block between them
// (Transformer Engine keeps that last block, not the rank's own).
HeadBuffers append_ring_gradient(NetworkUnit& unit, const AttentionHalf& half, int context_gradient,
                                 bool repeats_core) {
  const RingGradients gradients = ring_gradients(unit, half);
  const PassedOn back{OperationKind::pass_back, Phase::input_gradient};
  const int last = unit.lowering().plan.context_parallel - 1;
  for (int step = last; step >= 0; --step) {
    const HeadBuffers& block = half.ring[static_cast<std::size_t>(step % 2)];
    if (step > 0) pass(unit, back, block, half.ring[static_cast<std::size_t>((step + 1) % 2)]);
    const HeadBuffers sum = step == 0 ? gradients.own : gradients.place(step);
    if (step < last) pass(unit, back, gradients.place(step + 1), sum);
    if (repeats_core) repeat_block(unit, half, step, block);
    append_block_gradient(unit, half, context_gradient,
                          {step, step == last, block, step == last ? sum : gradients.of_block});
    if (step < last) append_block_addition(unit, gradients.of_block, sum);
  }
  return gradients.own;
}

// Runs the ring forwards once more, from the rank's own block, because what was passed on in the
// forward pass is not kept (PyTorch, torch/distributed/tensor/experimental/_attention.py,
// _templated_ring_attention_backward, whose inputs are the rank's own keys and values). The
// gradients of a block follow it and come home at the end, where they are added to those of its own
// rank; PyTorch sends these round as well, one message more.
HeadBuffers append_forward_ring_gradient(NetworkUnit& unit, const AttentionHalf& half,
                                         int context_gradient) {
  const RingGradients gradients = ring_gradients(unit, half);
  const PassedOn on{OperationKind::pass_on, Phase::input_gradient};
  const int last = unit.lowering().plan.context_parallel - 1;
  for (int step = 0; step <= last; ++step) {
    const HeadBuffers& block = block_at(half, half.ring, step);
    if (step < last) pass(unit, on, block, block_at(half, half.ring, step + 1));
    if (step > 1) pass(unit, on, gradients.place(step - 1), gradients.place(step));
    const HeadBuffers others = step == 1 ? gradients.place(step) : gradients.of_block;
    append_block_gradient(unit, half, context_gradient,
                          {step, step == 0, block, step == 0 ? gradients.own : others});
    if (step > 1) append_block_addition(unit, gradients.of_block, gradients.place(step));
  }
  pass(unit, on, gradients.place(last), gradients.of_block);
  append_block_addition(unit, gradients.of_block, gradients.own);
  return gradients.own;
}

// ---- Ulysses --------------------------------------------------------------------------------

// Exchanges tokens of all heads for heads of all tokens. KV heads are replicated if there are fewer
// than ranks. `shape.query_head_dim` is the dimension of the heads that are exchanged.
void exchange_heads(NetworkUnit& unit, Phase phase, const AttentionShape& shape, int from, int to) {
  const Lowering& lowering = unit.lowering();
  const Bytes message = std::max(bytes_of(lowering, from), bytes_of(lowering, to));
  append_context_collective(unit, phase, OperationKind::all_to_all, message,
                            {reads(from), creates(to)}, shape);
}

AttentionShape shape_of_values(AttentionShape shape) {
  shape.query_head_dim = shape.value_head_dim;
  return shape;
}

HeadBuffers dealt_heads(NetworkUnit& unit, const AttentionHalf& half, const HeadNames& names) {
  const std::int64_t rows = unit.lowering().tokens * unit.lowering().plan.context_parallel;
  const auto width = [](double heads, double dim) {
    return static_cast<std::int64_t>(heads * dim);
  };
  const AttentionShape& shape = half.shape;
  return make_heads(unit, names, rows, width(shape.heads, shape.query_head_dim),
                    width(shape.kv_heads, shape.query_head_dim),
                    width(shape.kv_heads, shape.value_head_dim));
}

void append_ulysses(NetworkUnit& unit, AttentionHalf& half) {
  const AttentionShape values = shape_of_values(half.shape);
  half.core = dealt_heads(unit, half, {"dealt queries", "dealt keys", "dealt values"});
  half.core_output = unit.lowering().activation(
      "dealt context", unit.lowering().tokens * unit.lowering().plan.context_parallel,
      static_cast<std::int64_t>(half.shape.heads * half.shape.value_head_dim));
  exchange_heads(unit, Phase::forward, half.shape, half.heads.queries, half.core.queries);
  exchange_heads(unit, Phase::forward, half.shape, half.heads.keys, half.core.keys);
  exchange_heads(unit, Phase::forward, values, half.heads.values, half.core.values);
  append_attention_core(unit, half, half.core);
  exchange_heads(unit, Phase::forward, values, half.core_output, half.branch.inner);
}

HeadBuffers append_ulysses_gradient(NetworkUnit& unit, const AttentionHalf& half,
                                    int context_gradient) {
  const AttentionShape values = shape_of_values(half.shape);
  const HeadBuffers gradients = make_gradients(unit, half);
  const HeadBuffers dealt = dealt_heads(
      unit, half, {"dealt query gradient", "dealt key gradient", "dealt value gradient"});
  const ProgramBuffer output = unit.lowering().program.buffer(half.core_output);
  const int output_gradient =
      unit.lowering().activation("dealt context gradient", output.rows, output.columns);
  exchange_heads(unit, Phase::input_gradient, values, context_gradient, output_gradient);
  append_attention_core_gradient(unit, half, half.core, output_gradient, dealt);
  exchange_heads(unit, Phase::input_gradient, half.shape, dealt.queries, gradients.queries);
  exchange_heads(unit, Phase::input_gradient, half.shape, dealt.keys, gradients.keys);
  exchange_heads(unit, Phase::input_gradient, values, dealt.values, gradients.values);
  return gradients;
}

}  // namespace

void append_core(NetworkUnit& unit, AttentionHalf& half) {
  const Plan& plan = unit.lowering().plan;
  half.core = half.heads;
  half.core_output = half.branch.inner;
  half.statistics = statistics_buffer(unit, half.shape);
  if (plan.context_parallel == 1) return append_attention_core(unit, half, half.heads);
  switch (plan.context_parallel_algorithm) {
    case ContextAlgorithm::ring:
      return append_ring(unit, half);
    case ContextAlgorithm::all_gather:
      return append_attention_core(unit, half, append_gather(unit, Phase::forward, half));
    case ContextAlgorithm::ulysses:
      break;
  }
  append_ulysses(unit, half);
}

HeadBuffers append_core_gradient(NetworkUnit& unit, const AttentionHalf& half, int context_gradient,
                                 Repeats repeats) {
  const Plan& plan = unit.lowering().plan;
  const bool repeats_core = repeats == Repeats::attention_core;
  const bool gathers =
      plan.context_parallel > 1 && plan.context_parallel_algorithm == ContextAlgorithm::all_gather;
  if (gathers) return append_gathered_gradient(unit, half, context_gradient, repeats_core);
  if (is_ring(plan) && repeats == Repeats::every_second_matmul) {
    return append_forward_ring_gradient(unit, half, context_gradient);
  }
  if (is_ring(plan)) return append_ring_gradient(unit, half, context_gradient, repeats_core);
  if (repeats_core) repeat_core(unit, half, half.core);
  if (plan.context_parallel == 1) {
    const HeadBuffers gradients = make_gradients(unit, half);
    append_attention_core_gradient(unit, half, half.heads, context_gradient, gradients);
    return gradients;
  }
  return append_ulysses_gradient(unit, half, context_gradient);
}

}  // namespace trainyard
