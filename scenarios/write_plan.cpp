#include "scenarios/output.h"
#include "scenarios/plan_value.h"
#include "scenarios/result_json.h"

namespace trainyard {
namespace {

Json candidates_json(const Scenario& scenario, const PreparedJob& job,
                     const std::vector<Candidate>& candidates) {
  Json list = Json::array();
  for (const Candidate& candidate : candidates) {
    Json one = {{"plan", plan_value(candidate.plan)}};
    one.update(estimate_value(scenario, job, candidate.plan, candidate.estimate));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

std::string plan_json(const Scenario& scenario, const PreparedJob& job, const SearchResult& result,
                      Seconds wall_time) {
  const Json json = {{"trainyard", "plans/1"},
                     {"name", scenario.name},
                     {"devices", job.job.cluster.devices()},
                     {"assumptions", scenario.assumptions},
                     {"plans", candidates_json(scenario, job, result.plans)},
                     {"closest", candidates_json(scenario, job, result.closest)},
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
