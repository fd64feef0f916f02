#include "model/cost/messages/traffic.h"

#include <algorithm>

#include "model/plan/layer_shard.h"
#include "model/plan/process_groups.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

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

Bytes hidden_message(const PreparedJob& job, const Plan& plan) {
  return Bytes(tokens_per_rank(job, plan) * job.job.model.hidden_size *
               job.job.training.precision.activation_bytes);
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
  ProcessGroups groups = process_groups(plan);
  if (job.tiers.devices < plan.devices()) {
    groups.pipeline.size = job.tiers.devices * plan.pipeline_parallel / plan.devices();
  }
  const auto links = [&](GroupShape shape) { return group_links(job.tiers, shape); };
  PlanLinks out;
  out.tensor = links(groups.tensor);
  out.context = links(groups.context);
  out.pipeline = links(groups.pipeline);
  out.pipeline.hops = hop_times(job.tiers, groups.pipeline);
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
    return group_links(job.tiers, shape, {(stage - links.first_stage) * of_stage, of_stage});
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
  use.filling = use.rate * use.crossing / group.across_all_to_all;
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

}  // namespace trainyard
