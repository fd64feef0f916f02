#include "scenarios/output.h"
#include "scenarios/plan_value.h"
#include "scenarios/result_json.h"

namespace trainyard {
namespace {

Json candidate_json(const Scenario& scenario, const PreparedJob& job, const Candidate& candidate) {
  Json one = {{"plan", plan_value(candidate.plan)}};
  one.update(estimate_value(scenario, job, candidate.plan, candidate.estimate));
  return one;
}

Json candidates_json(const Scenario& scenario, const PreparedJob& job,
                     const std::vector<Candidate>& candidates) {
  Json list = Json::array();
  for (const Candidate& candidate : candidates) {
    list.push_back(candidate_json(scenario, job, candidate));
  }
  return list;
}

Json improvement_json(const Scenario& scenario, const PreparedJob& job,
                      const std::optional<Improvement>& improvement) {
  if (!improvement) return nullptr;
  Json changed = Json::array();
  if (improvement->layers) changed.push_back("layers_per_stage");
  if (improvement->recompute) changed.push_back("recompute");
  if (improvement->order) changed.push_back("schedule");
  Json one = candidate_json(scenario, job, improvement->candidate);
  one.update({{"of", improvement->of},
              {"changed", std::move(changed)},
              {"step_time_bound_s", improvement->bound.value()}});
  return one;
}

}  // namespace

std::string plan_json(const Scenario& scenario, const PreparedJob& job, const SearchResult& result,
                      const std::optional<Improvement>& improvement, Seconds wall_time) {
  const Json json = {{"trainyard", "plans/1"},
                     {"name", scenario.name},
                     {"devices", job.job.cluster.devices()},
                     {"assumptions", scenario.assumptions},
                     {"plans", candidates_json(scenario, job, result.plans)},
                     {"closest", candidates_json(scenario, job, result.closest)},
                     {"improvement", improvement_json(scenario, job, improvement)},
                     {"search",
                      {{"space", result.space},
                       {"space_size", result.space_size},
                       {"considered", result.considered},
                       {"pruned", result.pruned},
                       {"pruned_by_memory", result.pruned_by_memory},
                       {"pruned_by_time", result.pruned_by_time},
                       {"infeasible", result.infeasible},
                       {"infeasible_by_states", result.shortfall.by_states},
                       {"infeasible_by_activations", result.shortfall.by_activations},
                       {"evaluated", result.evaluated},
                       {"wall_time_s", wall_time.value()},
                       {"optimal", result.optimal},
                       {"gap", result.gap}}}};
  return text_of(json);
}

}  // namespace trainyard
