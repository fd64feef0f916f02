#include "planner/heterogeneous/space.h"

#include <algorithm>
#include <string>

#include "planner/search/enumeration.h"

namespace trainyard {
namespace {

// The only value of a dimension, and whether the space allows it.
struct Allowed {
  OnlyValue only;
  bool left = true;
};

std::vector<Allowed> allowed_values(GroupUse use, const SearchSpace& space) {
  std::vector<Allowed> values = {
      {{"schedule", "1f1b"}, allows(space.schedule, "1f1b")},
      {{"virtual_stages", "1"}, space.virtual_stages.has(1)},
      {{"context_parallel", "1"}, space.context_parallel.has(1)},
      {{"expert_tensor_parallel", "1"}, space.expert_tensor_parallel.has(1)},
      {{"offload", "none"}, allows(space.offload, "none")},
      {{"rank_order", "tp-cp-ep-dp-pp"}, allows(space.rank_order, PlanRequest().rank_order)}};
  if (use == GroupUse::replicas) {
    values.push_back({{"expert_parallel", "1"}, space.expert_parallel.has(1)});
  }
  return values;
}

// A key of the options, and how to copy it alone.
struct OneKey {
  std::string_view key;
  void (*take)(GroupSearchOptions& to, const GroupSearchOptions& from);
};

constexpr OneKey kDegreesOfWays[] = {
    {"tensor_parallel",
     [](GroupSearchOptions& to, const GroupSearchOptions& from) {
       to.space.tensor_parallel = from.space.tensor_parallel;
     }},
    {"pipeline_parallel",
     [](GroupSearchOptions& to, const GroupSearchOptions& from) {
       to.space.pipeline_parallel = from.space.pipeline_parallel;
     }},
    {"data_parallel",
     [](GroupSearchOptions& to, const GroupSearchOptions& from) {
       to.space.data_parallel = from.space.data_parallel;
     }},
    {"expert_parallel",
     [](GroupSearchOptions& to, const GroupSearchOptions& from) {
       to.space.expert_parallel = from.space.expert_parallel;
     }},
    {"micro_batch",
     [](GroupSearchOptions& to, const GroupSearchOptions& from) {
       to.space.micro_batch = from.space.micro_batch;
     }},
    {"zero_stage",
     [](GroupSearchOptions& to, const GroupSearchOptions& from) {
       to.space.zero_stage = from.space.zero_stage;
     }},
    {"sharding_group",
     [](GroupSearchOptions& to, const GroupSearchOptions& from) {
       to.space.sharding_group = from.space.sharding_group;
       to.space.zero_stage = from.space.zero_stage;  // stage 0 has no groups
     }},
    {"layers_per_stage",
     [](GroupSearchOptions& to, const GroupSearchOptions& from) {
       to.layers_per_stage = from.layers_per_stage;
     }},
};

}  // namespace

std::optional<LeftOutWay> without_only_value(GroupUse use, const SearchSpace& space) {
  for (const auto& [only, left] : allowed_values(use, space)) {
    if (!left) return LeftOutWay{.use = use, .key = only.key, .value = only.value};
  }
  return std::nullopt;
}

std::vector<OnlyValue> only_values(GroupUse use) {
  std::vector<OnlyValue> values;
  for (const Allowed& allowed : allowed_values(use, {})) values.push_back(allowed.only);
  values.push_back({"sharding_group", "all"});
  return values;
}

std::optional<LeftOutWay> left_out_way(
    GroupUse use, const GroupSearchOptions& options,
    const std::function<bool(const GroupSearchOptions& options)>& has_degrees) {
  if (const auto without = without_only_value(use, options.space)) return without;
  if (has_degrees(options)) return std::nullopt;
  for (const OneKey& degree : kDegreesOfWays) {
    GroupSearchOptions alone;
    degree.take(alone, options);
    if (!has_degrees(alone)) return LeftOutWay{.use = use, .key = degree.key};
  }
  return LeftOutWay{.use = use};
}

std::vector<int> micro_batches(const SearchSpace& space, std::int64_t sequences) {
  std::vector<int> sizes = divisors(sequences);
  std::erase_if(sizes, [&space](int size) { return !space.micro_batch.has(size); });
  return sizes;
}

bool FittingSizes::may_fit(int micro_batch) {
  if (micro_batch <= last_) too_large_.clear();
  last_ = micro_batch;
  return std::ranges::none_of(too_large_,
                              [micro_batch](int size) { return micro_batch % size == 0; });
}

std::vector<RecomputeChoice> recomputations(const SearchSpace& space, const Stack& stack,
                                            int stages) {
  Stack unlimited = stack;
  unlimited.limits = {};
  std::vector<RecomputeChoice> choices = recompute_choices(space, unlimited);
  std::erase_if(choices,
                [stages](const RecomputeChoice& choice) { return !choice.is_for(stages); });
  return choices;
}

std::vector<PlanRequest> variants_of(const GroupedJob& job, const PlanRequest& request,
                                     const SearchSpace& space) {
  std::vector<PlanRequest> variants = {request};
  const auto vary = [&variants](const auto& values, auto PlanRequest::*member) {
    if (values.empty()) return;
    std::vector<PlanRequest> varied;
    for (const PlanRequest& one : variants) {
      for (const auto& value : values) {
        varied.push_back(one);
        varied.back().*member = value;
      }
    }
    variants = std::move(varied);
  };
  std::vector<int> zero_stages = {0, 1, 2, 3};
  std::erase_if(zero_stages, [&space](int stage) { return !space.zero_stage.has(stage); });
  vary(zero_stages, &PlanRequest::zero_stage);
  if (request.tensor_parallel > 1) {
    Stack unlimited = job.training.stack;  // what the stack runs is not asked of groups
    unlimited.limits = {};
    vary(sequence_choices(job.model, unlimited, space, {}), &PlanRequest::sequence_parallel);
  }
  vary(space.collective, &PlanRequest::collective);
  return variants;
}

bool may_have_stages(const GroupSearchOptions& options, int stages) {
  return options.layers_per_stage.empty() ||
         options.layers_per_stage.size() == static_cast<std::size_t>(stages);
}

bool may_shard(const SearchSpace& space, const Plan& plan) {
  const Numbers& groups = space.sharding_group;
  return groups.empty() || plan.zero_stage == 0 || groups.has(kShardOverAll) ||
         groups.has(plan.sharding_group);
}

}  // namespace trainyard
