#include "model/cost/messages/traffic.h"

#include <algorithm>

#include "model/plan/layer_shard.h"
#include "model/plan/process_groups.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

// Bytes of the activations that tensor parallelism moves: n·h elements.
Bytes hidden_message(const PreparedJob& job, const Plan& plan) {
  return Bytes(tokens_per_rank(job, plan) * job.job.model.hidden_size *
               job.job.training.precision.activation_bytes);
}

// The part of a reduce-scatter that leaves the links free for a gather. Of two collectives that
// take turns inside and between domains, one in reverse order, each uses other links at a time.
Seconds scatter_free(const TensorTraffic& tensor, const PlanLinks& links) {
  const bool by_levels = links.tensor.ranks_per_domain > 1 && tensor.use.crossing == 1;
  return by_levels ? tensor.reduce : tensor.reduce * tensor.use.free;
}

// Collectives of a block of one column-parallel and one row-parallel GEMM, before the first and
// after the second. With sequence parallelism an all-gather and a reduce-scatter in each direction;
// without it an all-reduce in each direction.
struct BlockTraffic {
  PassTraffic all;
  Seconds gather;  // before the first GEMM
};
BlockTraffic parallel_block(const PreparedJob& job, const Plan& plan, const TensorTraffic& tensor) {
  if (!plan.sequence_parallel) return {{tensor.reduce, tensor.reduce}, {}};
  const Seconds gather = job.job.training.stack.quantised_gathers ? tensor.again : tensor.gather;
  return {{gather + tensor.reduce, gather + tensor.reduce}, gather};
}

PassTraffic operator+(PassTraffic a, PassTraffic b) {
  return {a.forward + b.forward, a.backward + b.backward};
}

// Bytes of keys and values of this rank's own s/c tokens.
Bytes key_value_bytes(const PreparedJob& job, const Plan& plan) {
  const Transformer& model = job.job.model;
  const double width =
      model.latent_attention
          ? static_cast<double>(model.attention_heads) *
                (query_head_dim(model) + value_head_dim(model)) / plan.tensor_parallel
          : 2.0 * model.head_dim *
                std::max(1.0, static_cast<double>(model.kv_heads) / plan.tensor_parallel);
  return Bytes(tokens_per_rank(job, plan) * width * job.job.training.precision.activation_bytes);
}

PassTraffic ring_attention(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  const int steps = plan.context_parallel - 1;
  const Bytes message = key_value_bytes(job, plan);
  // Backward passes keys and values on, and their gradients back.
  return {steps * collective_time(send, links.context, message, links),
          2 * steps * collective_time(send, links.context, message, links)};
}

PassTraffic gathered_attention(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  const Bytes gathered = key_value_bytes(job, plan) * plan.context_parallel;
  const Seconds gather = collective_time(all_gather, links.context, gathered, links);
  return {gather, gather + collective_time(reduce_scatter, links.context, gathered, links)};
}

PassTraffic ulysses_attention(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  const Transformer& model = job.job.model;
  const double heads = static_cast<double>(model.attention_heads) / plan.tensor_parallel;
  const double kv_heads =
      std::max(static_cast<double>(model.kv_heads) / plan.tensor_parallel,
               static_cast<double>(plan.context_parallel));  // replicated when there are too few
  const double element = tokens_per_rank(job, plan) * job.job.training.precision.activation_bytes;
  const auto exchange = [&](double width) {
    return collective_time(all_to_all, links.context, Bytes(element * width), links);
  };
  const double key_heads = std::min(heads, kv_heads);
  const Seconds one =
      exchange(heads * query_head_dim(model)) + exchange(heads * value_head_dim(model)) +
      exchange(key_heads * query_head_dim(model)) + exchange(key_heads * value_head_dim(model));
  return {one, one};
}

PassTraffic context_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  if (plan.context_parallel == 1) return {};
  switch (plan.context_parallel_algorithm) {
    case ContextAlgorithm::ring:
      return ring_attention(job, plan, links);
    case ContextAlgorithm::all_gather:
      return gathered_attention(job, plan, links);
    case ContextAlgorithm::ulysses:
      break;
  }
  return ulysses_attention(job, plan, links);
}

// Elements in the k copies of a rank's tokens that are sent to experts, times the load of the
// busiest expert rank over the mean.
double dispatched_elements(const PreparedJob& job, const Plan& plan) {
  const Transformer& model = job.job.model;
  const double sharded = plan.sequence_parallel ? plan.tensor_parallel : 1;
  const double tokens = tokens_per_rank(job, plan) / sharded;
  const double load = routed_load(model, layer_shard(plan), tokens);
  return tokens * model.experts_per_token * model.hidden_size * load;
}

struct ExpertTraffic {
  PassTraffic all;
  Seconds combined;  // of the forward pass: the combine, and the reduce-scatter inside ETP groups
};
ExpertTraffic expert_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  const PrecisionRecipe& precision = job.job.training.precision;
  const double elements = dispatched_elements(job, plan);
  const Bytes dispatched(elements * precision.dispatch_bytes);
  const Bytes combined(elements * precision.activation_bytes);
  const auto exchange = [&](Bytes message) { return exchange_time(job, links, message); };
  const double gathered = plan.expert_tensor_parallel;
  const Seconds there =
      collective_time(all_gather, links.expert_tensor, dispatched * gathered, links);
  const Seconds back =
      collective_time(reduce_scatter, links.expert_tensor, combined * gathered, links);
  const Seconds combine = exchange(combined);
  return {{exchange(dispatched) + combine + there + back, 2 * combine + there + back},
          combine + back};
}

}  // namespace

double tokens_per_rank(const PreparedJob& job, const Plan& plan) {
  return static_cast<double>(plan.micro_batch) *
         static_cast<double>(job.job.training.sequence_length) / plan.context_parallel;
}

double distinct_share(const Transformer& model, int places) {
  const double experts = model.experts;
  const double elsewhere = experts - experts / places;
  double none = 1;
  for (int chosen = 0; chosen < model.experts_per_token; ++chosen) {
    none *= std::max(0.0, elsewhere - chosen) / (experts - chosen);
  }
  return places * (1 - none) / model.experts_per_token;
}

Seconds exchange_time(const PreparedJob& job, const PlanLinks& links, Bytes message) {
  const GroupLinks& group = links.expert;
  if (!job.job.training.stack.deduplicated_dispatch) {
    return collective_time(all_to_all, group, message, links);
  }
  const Transformer& model = job.job.model;
  const Bytes inside = message * distinct_share(model, group.size);
  if (group.domains == 1) return collective_time(all_to_all, group, inside, links);
  // A token goes once to each other domain, to the rank of the same place there, which passes it on
  // inside; both go on at the same time (DeepEP; DeepSeek-V3 report, §3.2.2).
  GroupLinks domain = group;
  domain.size = group.ranks_per_domain;
  domain.domains = 1;
  GroupLinks rail = group;
  rail.size = group.domains;
  rail.ranks_per_domain = 1;
  const Bytes across = message * distinct_share(model, group.domains);
  return std::max(collective_time(all_to_all, domain, inside, links),
                  collective_time(all_to_all, rail, across, links));
}

PlanLinks plan_links(const PreparedJob& job, const Plan& plan) {
  const ProcessGroups groups = process_groups(plan);
  const auto links = [&](GroupShape shape) { return group_links(job.tiers, shape); };
  PlanLinks out;
  out.tensor = links(groups.tensor);
  out.context = links(groups.context);
  out.pipeline = links(groups.pipeline);
  out.dense_gradient = links(groups.dense_gradient);
  // Most plans shard over all ranks that hold a copy: then the links are known already.
  const auto or_gradient = [&](GroupShape shape) {
    return shape == groups.dense_gradient ? out.dense_gradient : links(shape);
  };
  out.dense_shard = or_gradient(groups.dense_shard);
  out.dense_replica = links(groups.dense_replica);
  out.expert = links(groups.expert);
  out.expert_tensor = links(groups.expert_tensor);
  out.expert_data = or_gradient(groups.expert_data);
  out.choice = collective_choice(plan.collective, job.job.cluster);
  return out;
}

bool stages_lie_alike(const PreparedJob& job, const Plan& plan) {
  if (plan.pipeline_parallel == 1 || job.tiers.tiers.empty()) return true;
  const int in_domain = job.tiers.tiers.front().ranks;
  const int of_stage = plan.devices() / plan.pipeline_parallel;
  const bool in_rows = process_groups(plan).pipeline.stride != of_stage;  // others' between them
  return in_rows || in_domain % of_stage == 0 || of_stage % in_domain == 0;
}

PlanLinks stage_links(const PreparedJob& job, const Plan& plan, PlanLinks links, int stage) {
  const ProcessGroups groups = process_groups(plan);
  const int of_stage = plan.devices() / plan.pipeline_parallel;
  const auto own = [&](GroupShape shape) {
    return group_links(job.tiers, shape, {stage * of_stage, of_stage});
  };
  links.dense_gradient = own(groups.dense_gradient);
  links.dense_shard = own(groups.dense_shard);
  links.dense_replica = own(groups.dense_replica);
  links.expert_data = own(groups.expert_data);
  return links;
}

Seconds collective_time(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                        const PlanLinks& plan) {
  return collective_time(operation, links, message, plan.choice);
}

TensorTraffic tensor_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  if (plan.tensor_parallel == 1) return {};
  const Bytes message = hidden_message(job, plan);
  const auto operation = plan.sequence_parallel ? reduce_scatter : all_reduce;
  const CollectiveCost reduce = collective_cost(operation, links.tensor, message, links.choice);
  TensorTraffic tensor{.reduce = reduce.time,
                       .use = wire_use(operation, links.tensor, message, reduce)};
  if (!plan.sequence_parallel) return tensor;
  const PrecisionRecipe& precision = job.job.training.precision;
  const double cast = precision.saved_gemm_input_bytes / precision.activation_bytes;
  tensor.gather = collective_time(all_gather, links.tensor, message, links);
  tensor.again =
      cast == 1 ? tensor.gather : collective_time(all_gather, links.tensor, message * cast, links);
  return tensor;
}

namespace {

// Use by one message of the exchange of keys and values (Ulysses: of queries).
WireUse context_use(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  const Bytes own = key_value_bytes(job, plan);
  const auto use = [&](CollectiveOperation operation, Bytes message) {
    const CollectiveCost cost = collective_cost(operation, links.context, message, links.choice);
    return wire_use(operation, links.context, message, cost);
  };
  switch (plan.context_parallel_algorithm) {
    case ContextAlgorithm::ring:
      return use(send, own);
    case ContextAlgorithm::all_gather:
      return use(all_gather, own * plan.context_parallel);
    case ContextAlgorithm::ulysses:
      break;
  }
  const Transformer& model = job.job.model;
  const double queries =
      static_cast<double>(model.attention_heads) / plan.tensor_parallel * query_head_dim(model);
  return use(all_to_all, Bytes(tokens_per_rank(job, plan) * queries *
                               job.job.training.precision.activation_bytes));
}

// Use by dispatch and combine. Where a token goes once to each domain, it is passed on inside at
// the same time, so only the share across / (inside + across) of a member's bytes crosses domains.
WireUse expert_use(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  const GroupLinks& group = links.expert;
  const Bytes message(dispatched_elements(job, plan) * job.job.training.precision.activation_bytes);
  const CollectiveCost cost = collective_cost(all_to_all, group, message, links.choice);
  WireUse use = wire_use(all_to_all, group, message, cost);
  if (!job.job.training.stack.deduplicated_dispatch || group.domains == 1) return use;
  const Transformer& model = job.job.model;
  const double ranks = group.ranks_per_domain;
  const double domains = group.domains;
  const double inside = distinct_share(model, group.size) * (ranks - 1) / ranks;
  const double across = distinct_share(model, group.domains) * (domains - 1) / domains;
  use.crossing = across / (inside + across);
  use.rate = std::min(group.inside / (1 - use.crossing), group.across_all_to_all / use.crossing);
  return use;
}

}  // namespace

ExchangeUse exchange_use(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                         const TensorTraffic& tensor) {
  ExchangeUse use;
  // A tensor-parallel group inside a domain meets parameters' traffic where a device has one link
  // for both (PCIe), and in a switch if that traffic, too, goes between members of one domain. On
  // the links of a mesh they do not meet: the two groups have but one rank in common.
  const GroupLinks& group = links.tensor;
  const bool met = group.domains > 1 || group.one_link ||
                   (group.switched && links.dense_gradient.ranks_per_domain > 1);
  if (met) use.tensor = tensor.use;
  if (plan.context_parallel > 1) use.context = context_use(job, plan, links);
  if (plan.expert_parallel > 1) use.expert = expert_use(job, plan, links);
  return use;
}

namespace {

// Adds the collectives of an MTP layer's projection, a column-parallel GEMM of two inputs side by
// side, whose output columns are gathered. Their gradient needs a gather in the backward pass only
// under sequence parallelism, which leaves a rank the gradient of its own tokens.
void add_mtp_input(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                   const TensorTraffic& tensor, LayerTraffic& traffic) {
  if (plan.tensor_parallel == 1) return;
  const PrecisionRecipe& precision = job.job.training.precision;
  const Bytes one = hidden_message(job, plan);
  const double cast = precision.saved_gemm_input_bytes / precision.activation_bytes;
  const double gathered = job.job.training.stack.quantised_gathers ? cast : 1;
  const auto reduction = plan.sequence_parallel ? reduce_scatter : all_reduce;
  PassTraffic& shown = traffic.tensor_parallel;
  shown.forward += collective_time(all_gather, links.tensor, one, links);
  shown.backward += collective_time(reduction, links.tensor, 2 * one, links);
  if (!plan.sequence_parallel) return;
  const Seconds before = collective_time(all_gather, links.tensor, 2 * gathered * one, links);
  shown.forward += before;
  shown.backward += tensor.gather;
  traffic.gathered += before;
  traffic.mtp_gathered_again = collective_time(all_gather, links.tensor, 2 * cast * one, links);
}

}  // namespace

LayerTraffic layer_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                           const TensorTraffic& tensor, LayerKind kind) {
  LayerTraffic traffic;
  const BlockTraffic block = parallel_block(job, plan, tensor);
  const bool second_block = !kind.moe || job.job.model.shared_experts > 0;
  traffic.tensor_parallel = second_block ? block.all + block.all : block.all;
  traffic.gathered = second_block ? block.gather + block.gather : block.gather;
  if (plan.sequence_parallel) {
    if (!job.job.training.stack.keeps_gathered_inputs) traffic.gathered_again = tensor.again;
    traffic.scatter_free = scatter_free(tensor, links);
  }
  if (!kind.moe) traffic.tensor_after_last_saved = tensor.reduce;
  if (kind.mtp) add_mtp_input(job, plan, links, tensor, traffic);
  traffic.context_parallel = context_traffic(job, plan, links);
  if (plan.context_parallel_algorithm == ContextAlgorithm::ring) {
    traffic.context_steps = plan.context_parallel;
  }
  if (kind.moe) {
    const ExpertTraffic experts = expert_traffic(job, plan, links);
    traffic.expert_parallel = experts.all;
    traffic.expert_after_last_saved = experts.combined;
  }
  return traffic;
}

PassTraffic embedding_traffic(const Plan& plan, const TensorTraffic& tensor) {
  return {tensor.reduce, plan.sequence_parallel ? tensor.gather : Seconds(0)};
}

LayerTraffic head_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                          const TensorTraffic& tensor) {
  const Bytes statistics(tokens_per_rank(job, plan) * 4);  // fp32, one number a token
  const int reductions = job.job.training.stack.fused_cross_entropy ? 2 : 3;
  LayerTraffic traffic;
  PassTraffic& shown = traffic.tensor_parallel;
  shown.forward = reductions * collective_time(all_reduce, links.tensor, statistics, links);
  shown.backward = tensor.reduce;
  if (plan.sequence_parallel) {
    shown.forward += tensor.gather;
    if (!job.job.training.stack.keeps_gathered_inputs) traffic.gathered_again = tensor.gather;
    traffic.scatter_free = scatter_free(tensor, links);
  }
  return traffic;
}

PipelineSends pipeline_sends(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  if (plan.pipeline_parallel == 1) return {};
  const Bytes message = hidden_message(job, plan);
  const bool scattered = job.job.training.stack.scattered_sends && !plan.sequence_parallel;
  const double share = plan.sequence_parallel || scattered ? plan.tensor_parallel : 1;
  const Seconds gathered =
      scattered ? collective_time(all_gather, links.tensor, message, links) : Seconds(0);
  const auto over = [&](const GroupLinks& group) {
    return collective_time(send, group, message / share, links) + gathered;
  };
  GroupLinks inside = links.pipeline;
  if (inside.domains == 1 || inside.ranks_per_domain == 1) return {.between = over(inside)};
  GroupLinks between = links.pipeline;
  between.size = between.domains;
  between.ranks_per_domain = 1;
  PipelineSends sends{.between = over(between)};
  sends.stages_in_domain = inside.ranks_per_domain;
  inside.size = inside.ranks_per_domain;
  inside.domains = 1;
  sends.within = over(inside);
  return sends;
}

namespace {

// Time of a micro-batch's messages over both boundaries of a stage, in one direction. The network's
// first chunk receives no activations, its last one sends none; in a V the first stage holds both,
// and the chunks of the last stage pass activations on inside the stage.
Seconds over_boundaries(const Plan& plan, const PipelineSends& sends, int stage) {
  const bool turns = plan.schedule->route == Route::vee;
  const int at_end = plan.virtual_stages - (turns ? 2 : 1);
  return (stage == 0 ? at_end : plan.virtual_stages) * sends.behind(stage - 1) +
         (stage == plan.pipeline_parallel - 1 ? at_end : plan.virtual_stages) * sends.behind(stage);
}

// Messages of one micro-batch that this stage sends, forward and back. The last chunk sends no
// activations, the first no gradients. But on a loop with whole backward passes they are counted as
// if they did: otherwise BigScience's published runs, held out, are 15.5 % off instead of 13.5.
struct Sent {
  double forward, back;
};
Sent sent(const Plan& plan, int stage) {
  const bool first = stage == 0;
  const bool last = stage == plan.pipeline_parallel - 1;
  const double visits = plan.virtual_stages;
  if (plan.schedule->route == Route::loop) {
    if (!plan.schedule->splits_backward) return {visits, visits};
    return {visits - (last ? 1 : 0), visits - (first ? 1 : 0)};
  }
  const double ends = (first ? 1 : 0) + (last ? 1 : 0);
  const double both = visits - (plan.schedule->route == Route::vee ? 1.0 : 0.5) * ends;
  return {both, both};
}

}  // namespace

PassTimes sends_in_passes(const Stack& stack, const Plan& plan, const PipelineSends& sends,
                          int stage) {
  if (plan.pipeline_parallel == 1) return {};
  if (!plan.overlap.pipeline) {
    const auto [forward, back] = sent(plan, stage);
    return {.forward = forward * sends.between, .input_gradient = back * sends.between};
  }
  const Seconds shown = over_boundaries(plan, sends, stage) * stack.overlap_slowdown;
  return {.forward = shown, .input_gradient = shown};
}

Seconds PipelineSends::on_the_way(int stages) const {
  const int crossings = (stages - 1) / stages_in_domain;
  return crossings * between + (stages - 1 - crossings) * within;
}

namespace {

// Passes of one chunk on every stage: the longest and the sum, in seconds. Bare numbers, because
// their maximum is one instruction.
struct Round {
  double most = 0, sum = 0;
  void add(Seconds stage) {
    most = std::max(most, stage.value());
    sum += stage.value();
  }
  // Exposed part of the `sends` of a round. While one micro-batch goes round through all stages,
  // the slowest stage works on as many micro-batches; by as much as that is longer than the one
  // micro-batch's passes, sends are hidden.
  Seconds shown(int stages, Seconds sends) const {
    return std::max(Seconds(0), sends - Seconds(stages * most - sum));
  }
};

// Consecutive stages, and the time that a micro-batch takes through all of them and back, beyond
// the slowest stage's time for as many micro-batches (waits_for_sends()).
struct StageRun {
  Seconds excess;
  int stages = 1;
  bool is_slower_than(const StageRun& other) const {
    return excess * other.stages > other.excess * stages;
  }
};

// The run of at most `most` stages with the largest excess for each of its stages. `pace`: the
// slowest stage's passes.
StageRun slowest_run(std::span<const PassTimes> passes, const PipelineSends& sends, Seconds pace,
                     int most) {
  StageRun best;
  const int stages = static_cast<int>(passes.size());
  for (int first = 0; first < stages; ++first) {
    StageRun run{passes[static_cast<std::size_t>(first)].total() - pace, 1};
    for (int next = first + 1; next < std::min(stages, first + most); ++next) {
      const PassTimes& stage = passes[static_cast<std::size_t>(next)];
      run = {run.excess + 2 * sends.behind(next - 1) + stage.total() - pace, run.stages + 1};
      if (run.is_slower_than(best)) best = run;
    }
  }
  return best;
}

// The rounds in which a pipeline of several chunks a stage fills, or drains, and their exposed
// sends: without and with communication of parameters on the same links.
class Ramp {
 public:
  Ramp(int stages, Seconds one_way, Seconds round, const BesideSends& beside)
      : stages_(stages),
        round_(round),
        beside_(beside),
        alone_(one_way),
        stretched_(beside.stretch * one_way) {}
  void add(const Round& passes) {
    work_ += Seconds(stages_ * passes.most);
    alone_ += passes.shown(stages_, round_);
    stretched_ += passes.shown(stages_, beside_.stretch * round_);
  }
  Seconds shown() const {
    const Seconds all = work_ + stretched_;
    const double share = all > beside_.time ? beside_.time / all : 1;
    return share * stretched_ + (1 - share) * alone_;
  }

 private:
  int stages_;
  Seconds round_;
  const BesideSends& beside_;
  Seconds work_, alone_, stretched_;
};

}  // namespace

Seconds fill_time(const Stack& stack, const Plan& plan, std::span<const PassTimes> passes,
                  const PipelineSends& sends, const BesideRamps& beside) {
  if (!plan.overlap.pipeline || plan.pipeline_parallel == 1) return Seconds(0);
  const PipelineShape shape = pipeline_shape(plan);
  const Seconds one_way = sends.on_the_way(shape.stages);
  if (shape.route != Route::loop || shape.chunks == 1) {
    return 2 * one_way * std::max(0.0, 1 - 2 * stack.overlap_slowdown);
  }
  const Seconds around = sends.around(shape.stages);
  Ramp fills(shape.stages, one_way, around, beside.filling);
  Ramp drains(shape.stages, one_way, around, beside.draining);
  const auto chunks = static_cast<std::size_t>(shape.chunks);
  for (std::size_t chunk = 1; chunk < chunks; ++chunk) {
    Round forward, backward;
    for (std::size_t at = chunk; at < passes.size(); at += chunks) {
      forward.add(passes[at - 1].forward);
      backward.add(passes[at].backward());
    }
    fills.add(forward);
    drains.add(backward);
  }
  return fills.shown() + drains.shown();
}

Seconds waits_for_sends(const Plan& plan, std::span<const PassTimes> passes,
                        const PipelineSends& sends) {
  const PipelineShape shape = pipeline_shape(plan);
  const Schedule& schedule = *plan.schedule;
  // Whether a stage has as many micro-batches in flight as there are stages from it to the last.
  const bool one_each = shape.route == Route::loop && shape.chunks == 1 &&
                        !schedule.splits_backward && schedule.listed == nullptr &&
                        schedule.chunks_in_flight(shape, shape.stages - 1) == 1;
  // Under DualPipe neighbours wait for each other before every pair of passes. The first and the
  // last ones are in fill_time().
  const bool both_ways = shape.route == Route::both_ways;
  if (!(one_each || both_ways) || !plan.overlap.pipeline || shape.stages == 1) return Seconds(0);
  Seconds slowest;
  for (const PassTimes& stage : passes) slowest = std::max(slowest, stage.total());
  if (both_ways) {
    const StageRun run = slowest_run(passes, sends, slowest, shape.stages);
    return (shape.microbatches - 3) * run.excess / run.stages;
  }
  // The slowest run delays every group of as many micro-batches as it has stages; the micro-batches
  // that are left over are delayed by the slowest run of at most so many stages.
  Seconds waits;
  int left = shape.microbatches - 1;
  while (left > 1) {
    const StageRun run = slowest_run(passes, sends, slowest, left);
    if (run.excess <= Seconds(0)) break;
    const int turns = left / run.stages;
    waits += turns * run.excess;
    left %= run.stages;
  }
  return waits;
}

}  // namespace trainyard
