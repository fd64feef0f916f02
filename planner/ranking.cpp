#include "planner/ranking.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

auto plan_key(const Plan& plan) {
  return std::tuple(plan.tensor_parallel, plan.context_parallel, plan.pipeline_parallel,
                    plan.virtual_stages, plan.data_parallel, plan.expert_parallel,
                    plan.expert_tensor_parallel, plan.micro_batch, plan.zero_stage,
                    plan.recompute.mode, plan.recompute.full_layers, plan.schedule->name,
                    plan.context_parallel_algorithm, !plan.sequence_parallel, plan.sharding_group,
                    std::string_view(plan.rank_order), std::string_view(plan.collective));
}

struct Offer {
  double value;
  const Plan& plan;
  const Estimate& estimate;
};

bool better(const Offer& offer, const RankedCandidate& entry) {
  const auto& [plan, estimate] = entry.candidate;
  if (offer.value != entry.value) {
    return offer.value < entry.value;
  }
  if (offer.estimate.peak_memory != estimate.peak_memory) {
    return offer.estimate.peak_memory < estimate.peak_memory;
  }
  return plan_before(offer.plan, plan);
}

}  // namespace

bool plan_before(const Plan& a, const Plan& b) { return plan_key(a) < plan_key(b); }

void Ranking::offer(double value, const Plan& plan, const Estimate& estimate) {
  const Offer offer{value, plan, estimate};
  if (entries_.size() == capacity_ && (capacity_ == 0 || !better(offer, entries_.back()))) {
    return;
  }
  const auto place =
      std::find_if(entries_.begin(), entries_.end(),
                   [&](const RankedCandidate& entry) { return better(offer, entry); });
  entries_.insert(place, {value, {plan, estimate}});
  if (entries_.size() > capacity_) {
    entries_.pop_back();
  }
}

}  // namespace trainyard
