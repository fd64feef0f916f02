#include "planner/offered.h"

#include <algorithm>
#include <iterator>

#include "model/cost/memory/memory.h"
#include "model/plan/validity.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

template <typename T, typename U>
bool is_any_or(const std::vector<T>& known, const U& value) {
  return known.empty() || std::ranges::find(known, value) != known.end();
}

// Key-value heads of a tensor-parallel rank; where there are fewer heads than ranks, each rank has
// a copy of one.
int kv_heads_of_rank(const Transformer& model, int tensor) {
  const int heads = model.latent_attention ? model.attention_heads : model.kv_heads;
  return std::max(1, heads / tensor);
}

bool has_heads_for(const Job& job, ContextAlgorithm algorithm, int context, int tensor) {
  if (algorithm != ContextAlgorithm::ulysses) return true;
  return !job.training.stack.limits.ulysses_cuts_kv_heads ||
         kv_heads_of_rank(job.model, tensor) % context == 0;
}

// torchtitan/distributed/parallel_dims.py: experts lie on ranks of the mesh that shards the states.
// They are cut over t like the rest of the layer, or are whole and take the tensor-parallel ranks,
// too. `shards`: ranks of that mesh, which consists of whole context groups.
bool lie_over_shards(const Plan& plan, int shards) {
  const bool cut = plan.expert_tensor_parallel == plan.tensor_parallel;
  if (!cut && (plan.expert_parallel == 1 || plan.expert_tensor_parallel != 1)) return false;
  if (plan.expert_parallel == 1) return true;
  const int tensor = cut ? 1 : plan.tensor_parallel;
  return plan.expert_parallel % (plan.context_parallel * tensor) == 0 &&
         shards * tensor % plan.expert_parallel == 0;
}

bool has_experts_over_shards(const Job& job) {
  return job.model.experts > 0 && job.training.stack.limits.experts == ExpertSpread::over_shards;
}

std::vector<SearchedOffload> offloads_of_stack(const Job& job) {
  const Stack& stack = job.training.stack;
  std::vector<SearchedOffload> offloads;
  for (const OffloadChoice& choice : kOffloads) {
    if (choice.zero_stages == nullptr) continue;
    const std::vector<int>& stages = stack.offload.*choice.zero_stages;
    if (!stages.empty()) offloads.push_back({choice.offload, stages});
  }
  // The same number of layers as `resolve_recompute` takes; without a pipeline a stage has all.
  const int most = stack.limits.layers_stay ? job.model.layers - 1 : 0;
  if (stack.offloads_activations && (most > 0 || !stack.limits.layers_stay)) {
    offloads.push_back(
        {{.activations = OffloadTarget::host, .activation_layers = most}, {3}, true});
  }
  return offloads;
}

std::vector<SearchedOffload> named_offloads(const SearchSpace& space) {
  std::vector<SearchedOffload> offloads;
  for (const OffloadChoice& choice : kOffloads) {
    if (allows(space.offload, choice.name)) offloads.push_back({choice.offload, {}});
  }
  return offloads;
}

}  // namespace

bool offers_zero_stage(const Stack& stack, int zero_stage, int pipeline_parallel) {
  const bool in_pipeline = pipeline_parallel > 1 && !stack.pipeline_zero_stages.empty();
  return is_any_or(in_pipeline ? stack.pipeline_zero_stages : stack.zero_stages, zero_stage);
}

bool offers_sharding(const Job& job, const Plan& plan) {
  const Stack& stack = job.training.stack;
  const StackLimits& limits = stack.limits;
  const bool tensor =
      plan.tensor_parallel == 1 || is_any_or(limits.tensor_zero_stages, plan.zero_stage);
  const bool context =
      plan.context_parallel == 1 || is_any_or(limits.context_zero_stages, plan.zero_stage);
  if (!tensor || !context) return false;
  if (!offers_zero_stage(stack, plan.zero_stage, plan.pipeline_parallel)) return false;
  if (plan.zero_stage > 0) {
    return offers_group(stack, plan.sharding_group, plan.context_parallel) &&
           (!has_experts_over_shards(job) || lie_over_shards(plan, plan.sharding_group));
  }
  return !has_experts_over_shards(job) || lie_over_shards(plan, plan.context_parallel);
}

int repeated_layers_step(const Stack& stack, int virtual_stages) {
  switch (stack.partial_recompute) {
    case PartialRecompute::by_stage:
      return 1;
    case PartialRecompute::by_chunk:
      return virtual_stages;
    case PartialRecompute::none:
      break;
  }
  return 0;
}

bool offers_recompute(const Stack& stack, const Plan& plan) {
  if (!stack.limits.selective_recompute && recomputes(plan, RecomputeMode::selective)) return false;
  if (stack.partial_recompute == PartialRecompute::by_stage) return true;
  if (!plan.recompute_per_stage.empty()) return false;
  const int layers = plan.recompute.full_layers;
  const int step = repeated_layers_step(stack, plan.virtual_stages);
  return layers == 0 || (step > 0 && layers % step == 0);
}

bool offers_pipeline(const Stack& stack, const Plan& plan) {
  return plan.pipeline_parallel == 1 ||
         (stack.limits.pipelines && (!plan.passes || stack.limits.pass_lists));
}

bool offers_sequence_parallel(const Stack& stack, const Plan& plan) {
  const SequenceParallelism known = stack.limits.sequence_parallel;
  return plan.tensor_parallel == 1 || known == SequenceParallelism::either ||
         plan.sequence_parallel == (known == SequenceParallelism::always);
}

bool offers_context(const Job& job, const Plan& plan) {
  if (plan.context_parallel == 1) return true;
  const auto& known = job.training.stack.limits.context_algorithms;
  const ContextAlgorithm algorithm = plan.context_parallel_algorithm;
  return (!known || std::ranges::find(*known, name_of(algorithm)) != known->end()) &&
         has_heads_for(job, algorithm, plan.context_parallel, plan.tensor_parallel);
}

bool offers_experts(const Job& job, const Plan& plan) {
  const bool spread = plan.expert_parallel > 1 || plan.expert_tensor_parallel > 1;
  if (job.training.stack.limits.experts == ExpertSpread::none) return !spread;
  const int ranks = plan.data_parallel * plan.context_parallel;
  return !has_experts_over_shards(job) || lie_over_shards(plan, ranks);
}

bool offers_chunks(const Job& job, const Plan& plan) {
  const StackLimits& limits = job.training.stack.limits;
  if (plan.pipeline_parallel == 1) return true;
  const bool several = plan.virtual_stages > 1 && plan.schedule->route == Route::loop;
  if (several && plan.pipeline_parallel < limits.interleaved_stages) return false;
  if (limits.empty_chunks) return true;
  const std::vector<int> layers = LayersOfChunks(plan, job.model.layers).all();
  return std::ranges::find(layers, 0) == layers.end();
}

bool offers_group(const Stack& stack, int group, int context_parallel) {
  return !stack.limits.whole_context_groups || group % context_parallel == 0;
}

bool offers(const Job& job, const Plan& plan) {
  const Stack& stack = job.training.stack;
  return offers_sharding(job, plan) && offers_recompute(stack, plan) &&
         offers_pipeline(stack, plan) && offers_sequence_parallel(stack, plan) &&
         offers_context(job, plan) && offers_experts(job, plan) && offers_chunks(job, plan);
}

bool may_repeat(const SearchSpace& space, const Stack& stack, const Plan& plan) {
  if (space.recompute.empty()) return offers_recompute(stack, plan);
  return std::ranges::any_of(space.recompute, [&plan](const RecomputeChoice& choice) {
    if (!choice.is_for(plan.pipeline_parallel)) return false;
    for (int stage = 0; stage < plan.pipeline_parallel; ++stage) {
      const Recompute& named = choice.per_stage.empty()
                                   ? choice.every_stage
                                   : choice.per_stage[static_cast<std::size_t>(stage)];
      if (recompute_of(plan, stage) != named) return false;
    }
    return true;
  });
}

bool may_repeat_by_stage(const SearchSpace& space, const Stack& stack) {
  return space.recompute.empty() && stack.partial_recompute == PartialRecompute::by_stage;
}

bool names_several(const Numbers& numbers) {
  return std::ranges::any_of(numbers.values, [](int value) { return value > 1; }) ||
         (numbers.values.empty() && numbers.least > 1);
}

bool may_spread_experts(const SearchSpace& space, const Job& job, const Plan& degrees) {
  const bool named =
      names_several(space.expert_parallel) || names_several(space.expert_tensor_parallel);
  return named || offers_experts(job, degrees);
}

std::vector<ContextAlgorithm> known_context_algorithms(const SearchSpace& space, const Job& job,
                                                       int context, int tensor) {
  const std::vector<std::string>& named = space.context_parallel_algorithm;
  const auto& of_stack = job.training.stack.limits.context_algorithms;
  const bool any = !of_stack || (of_stack->empty() && names_several(space.context_parallel));
  std::vector<ContextAlgorithm> known;
  for (std::size_t i = 0; i < kContextAlgorithms.size(); ++i) {
    const auto algorithm = static_cast<ContextAlgorithm>(i);
    const bool offered =
        (any || std::ranges::find(*of_stack, name_of(algorithm)) != of_stack->end()) &&
        has_heads_for(job, algorithm, context, tensor);
    const bool has_heads =
        algorithm != ContextAlgorithm::ulysses || job.model.attention_heads / tensor % context == 0;
    if (has_heads && (named.empty() ? offered : is_any_or(named, name_of(algorithm)))) {
      known.push_back(algorithm);
    }
  }
  return known;
}

std::vector<SearchedOffload> offloads_of(const Job& job, const SearchSpace& space,
                                         const PlanRequest& base) {
  std::vector<SearchedOffload> offloads = {{base.offload, {}}};
  if (!space.offload.empty()) {
    offloads = named_offloads(space);
  } else if (base.offload == Offload{}) {
    std::ranges::copy(offloads_of_stack(job), std::back_inserter(offloads));
  }
  if (job.cluster.device.host_bandwidth <= BytesPerSecond(0)) {
    std::erase_if(offloads, [](const SearchedOffload& o) { return o.offload != Offload{}; });
  }
  std::erase_if(offloads, [&](const SearchedOffload& o) {
    return !can_offload(job.model, job.training, o.offload, 0);
  });
  for (SearchedOffload& searched : offloads) {
    if (!can_offload(job.model, job.training, searched.offload, 3)) searched.most_stage = 2;
  }
  return offloads;
}

}  // namespace trainyard
