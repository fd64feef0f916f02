#include "scenarios/interchange/plan_refusals.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace trainyard {

void refuse_pipeline(const Plan& plan, Refusals& refusals) {
  if (plan.pipeline_parallel == 1) return;
  refusals.add("/plan/pipeline_parallel", fmt::format("{}", plan.pipeline_parallel), "1");
}

void refuse_experts(const Plan& plan, Refusals& refusals) {
  if (plan.expert_parallel > 1) {
    refusals.add("/plan/expert_parallel", fmt::format("{}", plan.expert_parallel), "1");
  }
  if (plan.expert_tensor_parallel > 1) {
    refusals.add("/plan/expert_tensor_parallel", fmt::format("{}", plan.expert_tensor_parallel),
                 "1");
  }
}

void refuse_names(Refusals& refusals, std::string pointer, std::string_view found,
                  std::initializer_list<std::string_view> allowed) {
  if (std::ranges::find(allowed, found) != allowed.end()) return;
  refusals.add(std::move(pointer), fmt::format("\"{}\"", found),
               fmt::format("{}", fmt::join(allowed, ", ")));
}

void refuse_common(const Scenario& scenario, const Plan& plan, Refusals& refusals) {
  if (!plan.recompute_per_stage.empty()) {
    refusals.add("/plan/recompute", "a policy for each stage", "one for all stages");
  }
  if (!plan.collective.empty()) {
    refusals.add("/plan/collective", fmt::format("\"{}\"", plan.collective), "NCCL's own choice");
  }
  if (!plan.optimizer_barrier && scenario.job.training.stack.optimizer_barrier) {
    refusals.add("/plan/optimizer_barrier", "false", "true");
  }
}

void refuse_capacity_and_passes(const Plan& plan, Refusals& refusals) {
  if (plan.capacity_factor > 0) {
    refusals.add("/plan/capacity_factor", fmt::format("{}", plan.capacity_factor), "none");
  }
  if (plan.passes) refusals.add("/plan/schedule", "a pass list of its own", "a schedule's name");
}

}  // namespace trainyard
