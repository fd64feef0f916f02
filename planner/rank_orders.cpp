#include "planner/rank_orders.h"

#include <algorithm>
#include <string_view>

#include "model/plan/process_groups.h"

namespace trainyard {
namespace {

// Dimensions of a plan that have several ranks, in its own order, and those of one rank. Experts
// use the places of tensor and data parallelism for their own tensor parallelism and replicas.
struct Dimensions {
  std::vector<std::string_view> several, single;
};

Dimensions dimensions_of(const Plan& plan) {
  const int experts = plan.expert_parallel * plan.expert_tensor_parallel;
  const int stage = plan.tensor_parallel * plan.context_parallel * plan.data_parallel;
  const auto has_several = [&](std::string_view name) {
    if (name == "tp") return std::max(plan.tensor_parallel, plan.expert_tensor_parallel) > 1;
    if (name == "cp") return plan.context_parallel > 1;
    if (name == "ep") return plan.expert_parallel > 1;
    if (name == "pp") return plan.pipeline_parallel > 1;
    return plan.data_parallel > 1 || (experts > 1 && stage > experts);
  };
  Dimensions dimensions;
  const std::string_view order = plan.rank_order;
  for (std::size_t i = 0; i < order.size(); i += 3) {
    const std::string_view name = order.substr(i, 2);
    (has_several(name) ? dimensions.several : dimensions.single).push_back(name);
  }
  return dimensions;
}

std::string joined(const Dimensions& dimensions) {
  std::string order;
  for (const auto* names : {&dimensions.several, &dimensions.single}) {
    for (const std::string_view name : *names) {
      if (!order.empty()) order += '-';
      order += name;
    }
  }
  return order;
}

// Whether the order obeys the rules of plans: sharding groups are parts of a row of the inner
// dimension, or whole rows, and all groups of experts lie alike.
bool may_lie(const Plan& plan) {
  const bool context = plan.rank_order.find("cp") < plan.rank_order.find("dp");
  const int row = context ? plan.context_parallel : plan.data_parallel;
  const bool in_rows = row % plan.sharding_group == 0 || plan.sharding_group % row == 0;
  return in_rows && expert_groups_are_alike(plan);
}

}  // namespace

bool is_software(const Stack& stack) {
  const StackOffload& offload = stack.offload;
  return !stack.schedules.empty() || !offload.optimizer.empty() || !offload.activations.empty() ||
         !offload.states.empty() || !offload.all.empty();
}

bool leaves_replicas(const Transformer& model, const Plan& plan, std::string_view order) {
  if (order.ends_with("pp") || plan.pipeline_parallel == 1) return true;
  const int experts =
      model.experts > 0 ? plan.expert_parallel * plan.expert_tensor_parallel : plan.tensor_parallel;
  return experts == plan.tensor_parallel * plan.context_parallel;
}

bool runs_order(const Job& job, const Plan& plan) {
  const Stack& stack = job.training.stack;
  if (!is_software(stack)) return true;
  std::vector<std::string> known = stack.rank_orders;
  if (known.empty()) known.push_back(PlanRequest().rank_order);
  const Dimensions own = dimensions_of(plan);
  return std::ranges::any_of(known, [&](const std::string& order) {
    Plan other = plan;
    other.rank_order = order;
    return dimensions_of(other).several == own.several && leaves_replicas(job.model, plan, order);
  });
}

std::vector<std::string> other_rank_orders(const Plan& plan) {
  Dimensions dimensions = dimensions_of(plan);
  const std::vector<std::string_view> own = dimensions.several;
  std::sort(dimensions.several.begin(), dimensions.several.end());
  std::vector<std::string> orders;
  Plan other = plan;
  do {
    other.rank_order = joined(dimensions);
    if (dimensions.several != own && may_lie(other)) orders.push_back(other.rank_order);
  } while (std::next_permutation(dimensions.several.begin(), dimensions.several.end()));
  return orders;
}

}  // namespace trainyard
