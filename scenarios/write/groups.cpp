#include "scenarios/write/groups.h"

#include <fmt/format.h>

#include "model/cost/breakdown.h"
#include "planner/findings/marginal.h"
#include "planner/heterogeneous/space.h"
#include "planner/heterogeneous/team.h"
#include "planner/objective.h"
#include "scenarios/fields/documents.h"
#include "scenarios/plan_value.h"
#include "scenarios/write/result_json.h"

namespace trainyard {
namespace {

Json share_json(const Cluster& cluster, GroupUse use, const GroupShare& share) {
  const bool has_own = use == GroupUse::replicas && share.stages > 0;
  return {{"name", cluster.name},
          {"devices", cluster.devices()},
          {"stages", share.stages},
          {"layers", share.layers},
          {"replicas", share.replicas},
          {"micro_batches", share.microbatches},
          {"recompute", has_own ? recompute_value(share.recompute) : Json(nullptr)},
          {"peak_memory_bytes", share.peak_memory.value()},
          {"memory_bytes", cluster.device.memory.value()},
          {"fullest_stage", share.stages > 0 ? Json(share.fullest_stage) : Json(nullptr)}};
}

Json breakdown_value(const Breakdown& breakdown) {
  Json parts = Json::object();
  for (const BreakdownPart& part : breakdown_parts()) {
    parts[std::string(part.key)] = (breakdown.*part.time).value();
  }
  return parts;
}

// The plan's entry in the list of plans.
Json entry_of(const Scenario& scenario, const GroupedPlan& plan) {
  return grouped_plan_value(*scenario.unlike, plan, scenario.carbon_intensity);
}

}  // namespace

Json grouped_plan_value(const UnlikeCluster& cluster, const GroupedPlan& plan,
                        const std::optional<double>& carbon_intensity) {
  Json groups = Json::array();
  for (std::size_t g = 0; g < plan.shares.size(); ++g) {
    groups.push_back(share_json(cluster.groups[g], plan.use, plan.shares[g]));
  }
  return {{"use", name_of(plan.use)},
          {"first", plan.order.front()},
          {"order", plan.order},
          {"step_time_s", plan.step_time.value()},
          {"step_time_low_s", plan.step_time_low.value()},
          {"step_time_high_s", plan.step_time_high.value()},
          {"boundary_s", number_or_null(plan.boundary)},
          {"breakdown_s", breakdown_value(plan.breakdown)},
          {"cost_per_step_usd", number_or_null(plan.cost_per_step)},
          {"energy_per_step_joule", number_or_null(plan.energy_per_step)},
          {"carbon_per_step_g", carbon_value(plan.energy_per_step, carbon_intensity)},
          {"memory_share", plan.fullness},
          {"goodput", plan.goodput ? Json(*plan.goodput) : Json(nullptr)},
          {"feasible", plan.feasible},
          {"plan", plan_value(plan.plan)},
          {"groups", std::move(groups)}};
}

std::vector<std::size_t> groups_without_precision(const Scenario& scenario) {
  const PrecisionRecipe& precision = scenario.job.training.precision;
  const std::vector<Cluster>& groups = scenario.unlike->groups;
  std::vector<std::size_t> left_out;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!computes_in(groups[g], precision)) left_out.push_back(g);
  }
  return left_out;
}

std::string_view name_of(GroupUse use) {
  switch (use) {
    case GroupUse::pipeline:
      return "pipeline";
    case GroupUse::replicas:
      return "replicas";
    case GroupUse::together:
      return "together";
    case GroupUse::alone:
      break;
  }
  return "alone";
}

namespace {

Json left_out_json(const Scenario& scenario) {
  Json list = Json::array();
  for (const std::size_t g : groups_without_precision(scenario)) {
    const Cluster& group = scenario.unlike->groups[g];
    list.push_back({{"group", g},
                    {"name", group.name},
                    {"reason", fmt::format("{} does not compute in {}", group.device.name,
                                           scenario.job.training.precision.name)}});
  }
  return list;
}

Json ways_left_out(const Scenario& scenario, const GroupedPlans& found) {
  Json list = Json::array();
  for (const LeftOutWay& way : found.left_out) {
    list.push_back({{"use", name_of(way.use)},
                    {"group", way.group ? Json(*way.group) : Json(nullptr)},
                    {"reason", reason_of(scenario, way)}});
  }
  return list;
}

Json plans_json(const Scenario& scenario, const std::vector<GroupedPlan>& plans) {
  Json list = Json::array();
  for (const GroupedPlan& plan : plans) list.push_back(entry_of(scenario, plan));
  return list;
}

// Plans for other clusters than the scenario's, or another batch.
Json ways_out_json(const std::vector<GroupedWayOut>& ways) {
  Json list = Json::array();
  for (const GroupedWayOut& way : ways) {
    list.push_back({{"change", way.change},
                    {"use", name_of(way.plan.use)},
                    {"order", way.plan.order},
                    {"plan", plan_value(way.plan.plan)},
                    {"step_time_s", way.plan.step_time.value()},
                    {"memory_share", way.plan.fullness},
                    {"device_seconds_per_token", way.device_seconds_per_token}});
  }
  return list;
}

Json baselines_json(const Scenario& scenario, const std::vector<GroupedPlanBaseline>& baselines) {
  Json list = Json::array();
  for (const auto& [name, plan, reason] : baselines) {
    list.push_back({{"name", name},
                    {"best", plan ? entry_of(scenario, *plan) : Json(nullptr)},
                    {"reason", reason.empty() ? Json(nullptr) : Json(reason)}});
  }
  return list;
}

Json marginal_json(const std::vector<GroupedMarginalValue>& values) {
  Json list = Json::array();
  for (const GroupedMarginalValue& value : values) {
    list.push_back({{"resource", value.resource},
                    {"more", kMarginalShare},
                    {"gained", value.gained},
                    {"gained_by_group", value.gained_by_group},
                    {"same_plan", value.same_plan}});
  }
  return list;
}

Json not_varied(GroupUse use) {
  Json values = Json::object();
  for (const auto& [key, value] : only_values(use)) values[std::string(key)] = value;
  return values;
}

Json explained_json(const Scenario& scenario, const std::optional<GroupedExplained>& explained) {
  if (!explained) return nullptr;
  Json keys = Json::object();
  for (const auto& [key, value] : explained->pinned) keys[key] = value;
  const std::vector<GroupedPlan> plans = in_order(explained->found);
  return {{"keys", std::move(keys)},
          {"best", plans.empty() ? Json(nullptr) : entry_of(scenario, plans.front())},
          {"complete", explained->found.complete},
          {"ways_left_out", ways_left_out(scenario, explained->found)}};
}

}  // namespace

std::string reason_of(const Scenario& scenario, const LeftOutWay& way) {
  if (way.group) {
    return fmt::format("no plan on {} alone is legal and allowed",
                       scenario.unlike->groups[*way.group].name);
  }
  if (!way.value.empty()) {
    return fmt::format("the only {} there, {}, is not allowed", way.key, way.value);
  }
  if (!way.key.empty()) {
    return fmt::format("no {} that all groups at work can have is allowed", way.key);
  }
  return "no degrees that all groups at work can have are allowed together";
}

std::string groups_json(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                        const GroupedPlans& found, const GroupedFindings& findings) {
  const Json list = plans_json(scenario, plans);
  const Json file = {{"file", findings.written}, {"plan", "plans/0"}};
  Json notes = Json::array();
  for (const std::string& note : findings.notes) notes.push_back({{"note", note}});
  const Json second = found.second ? Json(objective_name(*found.second)) : Json(nullptr);
  const Json search = {{"complete", found.complete},
                       {"gap", gap_of(found)},
                       {"not_varied",
                        {{"pipeline", not_varied(GroupUse::pipeline)},
                         {"replicas", not_varied(GroupUse::replicas)}}},
                       {"step_time_bound_s", found.bound.value()}};
  return text_of({{"trainyard", "group-plans/1"},
                  {"name", scenario.name},
                  {"objective", objective_name(found.objective)},
                  {"second_objective", second},
                  {"plans", list},
                  {"closest", plans_json(scenario, found.closest)},
                  {"baselines", baselines_json(scenario, findings.baselines)},
                  {"marginal_values", marginal_json(findings.marginal)},
                  {"ways_out", ways_out_json(findings.ways_out)},
                  {"left_out", left_out_json(scenario)},
                  {"ways_left_out", ways_left_out(scenario, found)},
                  {"explained", explained_json(scenario, findings.explained)},
                  {"notes", std::move(notes)},
                  {"written", findings.written.empty() ? Json(nullptr) : file},
                  {"search", search}});
}

Json grouped_estimate_value(const Scenario& scenario, const UnlikeAnswer& answer) {
  const Plan& plan = answer.candidate.plan;
  Estimate estimate = answer.candidate.estimate;
  estimate.breakdown = answer.best.breakdown;
  Json json = {{"trainyard", "group-plans/1"},
               {"name", scenario.name},
               {"devices", plan.devices()},
               {"assumptions", scenario.assumptions}};
  json.update(estimate_value(scenario, answer.stand_in, plan, estimate));
  // Figures that each group has of its own.
  for (const char* key :
       {"hfu", "peak_allocated_bytes", "peak_reserved_bytes", "host_memory_bytes", "stages"}) {
    json[key] = nullptr;
  }
  json["plans"] = Json::array({entry_of(scenario, answer.best)});
  json["left_out"] = left_out_json(scenario);
  return json;
}

std::string grouped_estimate_json(const Scenario& scenario, const UnlikeAnswer& answer) {
  return text_of(grouped_estimate_value(scenario, answer));
}

}  // namespace trainyard
