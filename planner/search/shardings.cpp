// The shardings that the plans of an enumeration may have: ZeRO stage, sharding group, offload.
#include <algorithm>
#include <iterator>
#include <utility>

#include "model/cost/memory/memory.h"
#include "model/plan/validity.h"
#include "planner/offered.h"
#include "planner/search/enumeration.h"

namespace trainyard {
bool Enumeration::has_states_to_shard(const Degrees& d) const {
  const int expert_data = d.tensor * d.context * d.data / (d.expert * d.expert_tensor);
  return d.data * d.context > 1 || (has_experts && expert_data > 1);
}

Enumeration::ZeroStages Enumeration::offered_stages(const Degrees& d) const {
  ZeroStages stages{};
  for (const int stage : d.pipeline > 1 ? pipeline_zero_stages : zero_stages) {
    stages[static_cast<std::size_t>(stage)] = true;
  }
  const StackLimits& limits = job.training.stack.limits;
  const bool any = limits.tensor_zero_stages.empty() && limits.context_zero_stages.empty() &&
                   limits.experts != ExpertSpread::over_shards;
  if (any_stages || any) return stages;
  Plan plan = plan_of_degrees({.tensor_parallel = d.tensor,
                               .context_parallel = d.context,
                               .pipeline_parallel = d.pipeline,
                               .expert_parallel = d.expert,
                               .expert_tensor_parallel = d.expert_tensor},
                              d.data);
  for (; plan.zero_stage < 4; ++plan.zero_stage) {
    if (!offers_sharding(job, plan)) stages[static_cast<std::size_t>(plan.zero_stage)] = false;
  }
  return stages;
}

std::vector<int> Enumeration::zero_stages_of(const Degrees& d,
                                             const SearchedOffload& searched) const {
  std::vector<int> stages;
  if (searched.instead_of_recompute && d.pipeline > 1) return stages;
  const ZeroStages offered = offered_stages(d);
  for (int stage = 0; stage <= searched.most_stage; ++stage) {
    const bool may_lie = allows(searched.zero_stages, stage);
    if (offered[static_cast<std::size_t>(stage)] && may_lie) stages.push_back(stage);
  }
  if (has_states_to_shard(d)) return stages;
  // One rank shards nothing: stages then differ only in their copies to the hosts, and in which
  // weights are kept.
  const bool copies = searched.offload != Offload{};
  const auto same_as = [&](int stage) {
    const bool differs = copies ? stage >= 2 : stage == 3 && sharding_drops_weights;
    return differs ? stage : 0;
  };
  const auto alike = [&](int a, int b) { return same_as(a) == same_as(b); };
  stages.erase(std::unique(stages.begin(), stages.end(), alike), stages.end());
  return stages;
}

void Enumeration::add_shardings(const Degrees& d, const SearchedOffload& searched,
                                std::vector<Sharding>& list) const {
  const auto add = [&](int stage, int group) {
    const std::size_t own = list.size();
    list.push_back({stage, group, searched.offload, searched.instead_of_recompute, own, own});
    const auto on_device = std::ranges::find_if(list, [&](const Sharding& other) {
      return other.zero_stage == stage && other.group == group && other.offload == Offload{};
    });
    if (on_device == list.end()) return;
    list.back().on_device = static_cast<std::size_t>(on_device - list.begin());
  };
  for (const int stage : zero_stages_of(d, searched)) {
    const std::size_t first = list.size();
    for (const int group : groups_of(d, stage)) {
      add(stage, group);
      const bool after_all = groups_only_add && list[first].group == 0;
      if (after_all) list.back().over_all = first;
    }
  }
}

std::vector<int> Enumeration::groups_of(const Degrees& d, int stage) const {
  std::vector<int> groups;
  if (stage == 0 || sharding_groups.empty()) {
    groups.push_back(0);
    if (holds(grouped_stages, stage)) {
      std::ranges::copy(group_sizes[d.groups], std::back_inserter(groups));
    }
    return groups;
  }
  const bool over_all = sharding_groups.has(kShardOverAll);
  if (over_all) groups.push_back(0);
  const std::int64_t all = std::int64_t{d.data} * d.context;
  for (const int group : divisors(all)) {
    if (sharding_groups.has(group) && !(over_all && group == all)) groups.push_back(group);
  }
  return groups;
}

std::vector<Sharding> Enumeration::shardings_of(const Degrees& d) const {
  std::vector<Sharding> result;
  for (const SearchedOffload& searched : offloads) add_shardings(d, searched, result);
  return result;
}

}  // namespace trainyard
