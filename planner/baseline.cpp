#include "planner/baseline.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/enumeration.h"

namespace trainyard {
namespace {

// The largest degree inside a node that divides `of`.
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
  request.data_parallel.reset();
  request.expert_parallel = job.model.experts > 0 ? inside_node(job.cluster, job.model.experts) : 1;
  request.expert_tensor_parallel = 1;
  request.micro_batch = 1;
  request.zero_stage.reset();
  request.sharding_group.reset();
  return request;
}

}  // namespace

std::optional<Candidate> rule_of_thumb(const PreparedJob& job, const PlanRequest& base,
                                       const Evaluator& evaluate) {
  const Job& j = job.job;
  PlanRequest request = without_pipeline(j, base);
  std::optional<Candidate> last;
  const std::vector<int> pipelines = divisors(j.cluster.devices() / request.tensor_parallel);
  for (const RecomputeMode mode :
       {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
    request.recompute = {.mode = mode};
    for (const int pipeline : pipelines) {
      request.pipeline_parallel = pipeline;
      auto plan = plan_if_legal(request, j.model, j.cluster, j.training);
      if (!plan) {
        continue;
      }
      Candidate candidate{*std::move(plan), {}};
      evaluate(candidate.plan, candidate.estimate);
      const bool fits = candidate.estimate.feasible;
      last = std::move(candidate);
      if (fits) {
        return last;
      }
    }
  }
  return last;
}

std::optional<Candidate> plain_data_parallel(const PreparedJob& job, const Evaluator& evaluate) {
  const Job& j = job.job;
  auto plan = plan_if_legal({.zero_stage = 0}, j.model, j.cluster, j.training);
  if (!plan) {
    return std::nullopt;
  }
  Candidate candidate{*std::move(plan), {}};
  evaluate(candidate.plan, candidate.estimate);
  return candidate;
}

}  // namespace trainyard
