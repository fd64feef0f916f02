#include "planner/search/ranking.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

// The key of the order of plans. `group` takes the place of the plan's sharding group.
auto plan_key(const Plan& plan, int group) {
  return std::tuple(
      plan.tensor_parallel, plan.context_parallel, plan.pipeline_parallel, plan.virtual_stages,
      plan.data_parallel, plan.expert_parallel, plan.expert_tensor_parallel, plan.micro_batch,
      plan.zero_stage, plan.recompute.mode, plan.recompute.full_layers, plan.schedule->name,
      plan.offload.parameters, plan.offload.gradients, plan.offload.optimizer,
      plan.offload.activations, plan.context_parallel_algorithm, !plan.sequence_parallel, group,
      std::string_view(plan.rank_order), std::string_view(plan.collective));
}

struct Offer {
  double value;
  const Plan& plan;
  const Estimate& estimate;
};

bool better(const Offer& offer, const RankedCandidate& entry) {
  const auto& [plan, estimate, confirmation] = entry.candidate;
  if (offer.value != entry.value) {
    return offer.value < entry.value;
  }
  if (offer.estimate.peak_memory != estimate.peak_memory) {
    return offer.estimate.peak_memory < estimate.peak_memory;
  }
  if (offer.estimate.step_time != estimate.step_time) {
    return offer.estimate.step_time < estimate.step_time;
  }
  return plan_before(offer.plan, plan);
}

bool differ_in_group_alone(const Plan& a, const Plan& b) {
  return a.sharding_group != b.sharding_group && plan_key(a, 0) == plan_key(b, 0) &&
         a.recompute_per_stage == b.recompute_per_stage;
}

}  // namespace

bool plan_before(const Plan& a, const Plan& b) {
  const auto first = plan_key(a, a.sharding_group), second = plan_key(b, b.sharding_group);
  if (first != second) return first < second;
  return std::lexicographical_compare(
      a.recompute_per_stage.begin(), a.recompute_per_stage.end(), b.recompute_per_stage.begin(),
      b.recompute_per_stage.end(), [](const Recompute& x, const Recompute& y) {
        return std::tuple(x.mode, x.full_layers) < std::tuple(y.mode, y.full_layers);
      });
}

bool same_choices(const Plan& a, const Plan& b) { return !plan_before(a, b) && !plan_before(b, a); }

void Ranking::offer(double value, const Plan& plan, const Estimate& estimate) {
  const Offer offer{value, plan, estimate};
  if (entries_.size() == capacity_ && (capacity_ == 0 || !better(offer, entries_.back()))) {
    return;
  }
  const auto like = std::ranges::find_if(entries_, [&](const RankedCandidate& entry) {
    return one_group_each_ && differ_in_group_alone(entry.candidate.plan, plan);
  });
  if (like != entries_.end()) {
    if (!better(offer, *like)) return;
    entries_.erase(like);
  }
  const auto place =
      std::find_if(entries_.begin(), entries_.end(),
                   [&](const RankedCandidate& entry) { return better(offer, entry); });
  entries_.insert(place, {value, {plan, estimate, std::nullopt}});
  if (entries_.size() > capacity_) {
    entries_.pop_back();
  }
}

bool ParetoFront::has_room_for(const Values& values) const {
  return std::none_of(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return dominates(entry.values, values); });
}

void ParetoFront::offer(const Values& values, const Plan& plan, const Estimate& estimate) {
  if (!has_room_for(values)) return;
  const auto equal = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.values == values; });
  if (equal != entries_.end() && !plan_before(plan, equal->candidate.plan)) return;
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.values == values || dominates(values, entry.values);
  });
  const auto place = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.values.first > values.first;
  });
  entries_.insert(place, {values, {plan, estimate, std::nullopt}});
}

std::vector<Candidate> ParetoFront::candidates() const {
  std::vector<Candidate> result;
  result.reserve(entries_.size());
  for (const Entry& entry : entries_) result.push_back(entry.candidate);
  return result;
}

}  // namespace trainyard
