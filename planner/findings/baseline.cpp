#include "planner/findings/baseline.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/search/enumeration.h"

namespace trainyard {
namespace {

// The largest degree that divides both a node's devices and `of`.
int inside_node(const Cluster& cluster, std::int64_t of) {
  return static_cast<int>(std::gcd<std::int64_t>(cluster.devices_per_node, of));
}

PlanRequest without_pipeline(const Job& job, const PlanRequest& base) {
  PlanRequest request = base;
  request.tensor_parallel = inside_node(job.cluster, job.model.attention_heads);
  request.context_parallel = 1;
  request.virtual_stages = 1;
  request.schedule.clear();
  request.layers_per_stage.clear();
  request.recompute_per_stage.clear();
  request.passes = nullptr;
  request.data_parallel.reset();
  request.expert_parallel = job.model.experts > 0 ? inside_node(job.cluster, job.model.experts) : 1;
  request.expert_tensor_parallel = 1;
  request.micro_batch = 1;
  request.zero_stage.reset();
  request.sharding_group.reset();
  return request;
}

// What the software can repeat, the least first.
std::vector<RecomputeMode> modes_of(const Stack& stack) {
  if (!stack.limits.selective_recompute) return {RecomputeMode::none, RecomputeMode::full};
  return {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full};
}

// The plan with the least recomputation that fits; if none does, the last legal one; if none is
// legal, the refusal of the first. Requires: `pipelines` (degrees to try) is not empty.
Expected<Candidate> first_that_fits(const PreparedJob& job, PlanRequest request,
                                    const std::vector<int>& pipelines, const Evaluator& evaluate) {
  const Job& j = job.job;
  std::optional<Candidate> last;
  Error refused;
  for (const RecomputeMode mode : modes_of(j.training.stack)) {
    request.recompute = {.mode = mode};
    for (const int pipeline : pipelines) {
      request.pipeline_parallel = pipeline;
      auto plan = make_plan(request, j.model, j.cluster, j.training);
      if (!plan) {
        if (refused.message.empty()) refused = std::move(plan.error());
        continue;
      }
      Candidate candidate{*std::move(plan), {}, {}};
      evaluate(candidate.plan, candidate.estimate);
      const bool fits = candidate.estimate.feasible;
      if (fits) return candidate;
      last = std::move(candidate);
    }
  }
  if (!last) return tl::unexpected(std::move(refused));
  return *std::move(last);
}

}  // namespace

Expected<Candidate> rule_of_thumb(const PreparedJob& job, const PlanRequest& base,
                                  const Evaluator& evaluate) {
  const Job& j = job.job;
  PlanRequest request = without_pipeline(j, base);
  return first_that_fits(job, request, divisors(j.cluster.devices() / request.tensor_parallel),
                         evaluate);
}

Expected<Candidate> data_parallel_only(const PreparedJob& job, int zero_stage,
                                       const PlanRequest& base, const Evaluator& evaluate) {
  PlanRequest request = without_pipeline(job.job, base);
  request.tensor_parallel = 1;
  request.expert_parallel = 1;
  request.sequence_parallel.reset();
  request.zero_stage = zero_stage;
  auto found = first_that_fits(job, request, {1}, evaluate);
  if (found && !found->estimate.feasible) {
    found->plan.recompute = {};
    evaluate(found->plan, found->estimate);
  }
  return found;
}

}  // namespace trainyard
