#include "scenarios/write/plan.h"

#include "model/cost/reliability.h"
#include "planner/held_memory.h"
#include "scenarios/plan_value.h"
#include "scenarios/write/result_json.h"

namespace trainyard {
namespace {

// What is known of a plan beyond its estimate.
Json beside_estimate(const Scenario& scenario, const PreparedJob& job, const Candidate& candidate) {
  const Reliability& reliability = scenario.reliability;
  const auto goodput = estimate_goodput(job, candidate.plan, candidate.estimate.step_time,
                                        reliability, scenario.checkpoint);
  Json json = {{"goodput", goodput.goodput},
               {"robust_step_time_s",
                robust_step_time(reliability, candidate.plan, candidate.estimate).value()}};
  if (const auto& confirmed = candidate.confirmation) {
    const bool simulated = confirmed->simulated.has_value();
    json["simulated_step_time_s"] =
        simulated ? Json(confirmed->simulated->step_time.value()) : Json(nullptr);
    json["simulated_peak_memory_bytes"] =
        simulated ? Json(confirmed->simulated->peak_memory.value()) : Json(nullptr);
    json["simulated_feasible"] = simulated ? Json(confirmed->simulated->feasible) : Json(nullptr);
    json["simulation_departs"] = simulated ? Json(confirmed->departs) : Json(nullptr);
    json["not_simulated_because"] = simulated ? Json(nullptr) : Json(confirmed->reason);
  }
  return json;
}

Json candidate_json(const Scenario& scenario, const PreparedJob& job, const Candidate& candidate) {
  Json one = {{"plan", plan_value(candidate.plan)}};
  one.update(estimate_value(scenario, job, candidate.plan, candidate.estimate));
  one.update(beside_estimate(scenario, job, candidate));
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
                      const std::optional<Improvement>& improvement,
                      const std::vector<Candidate>& listed) {
  if (!improvement) return nullptr;
  Json changed = Json::array();
  if (improvement->layers) changed.push_back("layers_per_stage");
  if (improvement->recompute) changed.push_back("recompute");
  if (improvement->placement) changed.push_back("rank_order");
  if (improvement->sharding) changed.push_back("sharding_group");
  const Plan& plan = improvement->candidate.plan;
  if (plan.schedule != improvement->of.schedule) changed.push_back("schedule");
  if (plan.virtual_stages != improvement->of.virtual_stages) changed.push_back("virtual_stages");
  Json one = candidate_json(scenario, job, improvement->candidate);
  const auto place = place_of_changed(*improvement, listed);
  one.update({{"of", place ? Json(*place) : Json(nullptr)},
              {"of_plan", plan_value(improvement->of)},
              {"changed", std::move(changed)},
              {"step_time_bound_s", improvement->bound.value()}});
  return one;
}

Json best_json(const Scenario& scenario, const PreparedJob& job,
               const std::optional<Candidate>& best) {
  return best ? candidate_json(scenario, job, *best) : Json(nullptr);
}

Json baselines_json(const Scenario& scenario, const PreparedJob& job,
                    const std::vector<PlanBaseline>& baselines) {
  Json list = Json::array();
  for (const PlanBaseline& baseline : baselines) {
    list.push_back({{"name", baseline.name},
                    {"best", best_json(scenario, job, baseline.candidate)},
                    {"reason", baseline.reason.empty() ? Json(nullptr) : Json(baseline.reason)}});
  }
  return list;
}

Json marginal_json(const std::vector<MarginalValue>& values) {
  Json list = Json::array();
  for (const MarginalValue& value : values) {
    list.push_back({{"resource", value.resource},
                    {"more", kMarginalShare},
                    {"gained", value.gained},
                    {"same_plan", value.same_plan}});
  }
  return list;
}

Json notes_json(const std::vector<PlanNote>& notes) {
  Json list = Json::array();
  for (const PlanNote& note : notes) {
    list.push_back({{"note", note.text}, {"plans", note.plans}, {"improvement", note.improvement}});
  }
  return list;
}

Json written_json(const std::optional<WrittenPlan>& written) {
  if (!written) return nullptr;
  return {{"file", written->file}, {"plan", written->improved ? "improvement" : "plans/0"}};
}

// What the plan that exceeds the memory by the least lacks.
Json shortfall_json(const PreparedJob& job, const std::vector<Candidate>& closest) {
  if (closest.empty()) return nullptr;
  const Estimate& estimate = closest.front().estimate;
  const auto missing = infeasibility(estimate, job.job.cluster);
  if (!missing) return nullptr;
  const HeldMemory held = held_memory(estimate);
  return {{"on_hosts", missing->on_hosts},
          {"stage", missing->stage},
          {"required_bytes", missing->required.value()},
          {"available_bytes", missing->available.value()},
          {"states_bytes", held.states.value()},
          {"activations_bytes", held.activations.value()},
          {"others_bytes", held.others.value()},
          {"by", held.by_states() ? "states" : "activations"}};
}

// A plan for another job than the scenario's: a larger cluster, a smaller batch.
Json way_out_json(const WayOut& way) {
  return {{"change", way.change},
          {"plan", plan_value(way.candidate.plan)},
          {"step_time_s", way.candidate.estimate.step_time.value()},
          {"peak_memory_bytes", way.candidate.estimate.peak_memory.value()},
          {"device_seconds_per_token", way.device_seconds_per_token}};
}

Json ways_out_json(const std::vector<WayOut>& ways) {
  Json list = Json::array();
  for (const WayOut& way : ways) list.push_back(way_out_json(way));
  return list;
}

Json explained_json(const Scenario& scenario, const PreparedJob& job,
                    const std::optional<Explained>& explained) {
  if (!explained) return nullptr;
  Json keys = Json::object();
  for (const auto& [key, value] : explained->pinned) keys[key] = value;
  return {{"keys", std::move(keys)},
          {"best", best_json(scenario, job, explained->candidate)},
          {"reason", explained->reason},
          {"notes", explained->notes}};
}

Json index_of(const std::vector<CapacityPoint>& points, const CapacityPoint* point) {
  return point == nullptr ? Json(nullptr) : Json(point - points.data());
}

Json point_json(const Scenario& scenario, const CapacityPoint& point) {
  const Training& training = point.job.training;
  Json best = nullptr;
  if (point.best) best = candidate_json(scenario, prepare(point.job), *point.best);
  return {{"model", point.job.model.name},
          {"devices", point.job.cluster.devices()},
          {"nodes", point.job.cluster.nodes},
          {"global_batch", training.global_batch},
          {"sequence_length", training.sequence_length},
          {"best", std::move(best)},
          {"optimal", point.optimal},
          {"gap", point.gap},
          {"run_time_s", point.run ? Json(point.run->value()) : Json(nullptr)},
          {"run_cost_usd", number_or_null(point.run_cost)},
          {"in_time", scenario.space.deadline ? Json(point.in_time) : Json(nullptr)}};
}

}  // namespace

std::string plan_json(const Scenario& scenario, const PreparedJob& job, const SearchResult& result,
                      const PlanFindings& findings, Seconds wall_time) {
  const Json json = {
      {"trainyard", "plans/1"},
      {"name", scenario.name},
      {"devices", job.job.cluster.devices()},
      {"assumptions", scenario.assumptions},
      {"plans", candidates_json(scenario, job, result.plans)},
      {"closest", candidates_json(scenario, job, result.closest)},
      {"shortfall", shortfall_json(job, result.closest)},
      {"improvement",
       improvement_json(scenario, job, findings.improvement, result.plans_or_closest())},
      {"baselines", baselines_json(scenario, job, findings.baselines)},
      {"marginal_values", marginal_json(findings.marginal)},
      {"ways_out", ways_out_json(findings.ways_out)},
      {"fewer_nodes", findings.fewer_nodes ? way_out_json(*findings.fewer_nodes) : Json(nullptr)},
      {"explained", explained_json(scenario, job, findings.explained)},
      {"notes", notes_json(findings.notes)},
      {"written", written_json(findings.written)},
      {"search",
       {{"objective", objective_name(result.objective)},
        {"second_objective", result.second ? Json(objective_name(*result.second)) : Json(nullptr)},
        {"space", result.space},
        {"space_size", result.space_size},
        {"considered", result.considered},
        {"pruned", result.pruned},
        {"pruned_by_memory", result.pruned_by_memory},
        {"pruned_by_objective", result.pruned_by_objective},
        {"infeasible", result.infeasible},
        {"infeasible_by_states", result.shortfall.by_states},
        {"infeasible_by_activations", result.shortfall.by_activations},
        {"evaluated", result.evaluated},
        {"illegal", result.illegal},
        {"wall_time_s", wall_time.value()},
        {"optimal", result.optimal},
        {"gap", result.gap}}}};
  return text_of(json);
}

std::string capacity_json(const Scenario& scenario, const std::vector<CapacityPoint>& points,
                          Objective objective) {
  Json list = Json::array();
  for (const CapacityPoint& point : points) list.push_back(point_json(scenario, point));
  const Wanted asked = wanted(scenario.space);
  return text_of({{"trainyard", "capacity/1"},
                  {"name", scenario.name},
                  {"objective", objective_name(objective)},
                  {"points", std::move(list)},
                  {"fewest_devices", index_of(points, fewest_devices(points))},
                  {"largest_model", index_of(points, largest_model(points, asked))},
                  {"longest_sequence", index_of(points, longest_sequence(points, asked))}});
}

}  // namespace trainyard
