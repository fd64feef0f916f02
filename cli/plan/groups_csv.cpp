#include "cli/plan/groups_csv.h"

#include <fmt/format.h>

#include <utility>

#include "cli/plan/groups_table.h"
#include "cli/text/csv.h"
#include "cli/text/plan.h"
#include "model/schedule/schedule.h"
#include "planner/heterogeneous/value.h"
#include "planner/objective.h"
#include "scenarios/write/groups.h"

namespace trainyard {
namespace {

std::string csv_carbon(const Scenario& scenario, const GroupedPlan& plan) {
  if (!plan.energy_per_step || !scenario.carbon_intensity) return "";
  return csv_number(plan.energy_per_step->value() * *scenario.carbon_intensity);
}

// The robust step time: the step time, times the factor by which robustness raises the value that
// plans are ordered by.
std::string csv_robust(const GroupedPlan& plan, const GroupedPlans& found) {
  const bool by_second = found.objective == Objective::memory;  // memory does not depend on time
  const Objective objective = by_second ? *found.second : found.objective;
  double plain = plan.step_time.value();
  if (objective == Objective::cost) plain = plan.cost_per_step->value();
  if (objective == Objective::energy) plain = plan.energy_per_step->value();
  if (objective == Objective::goodput) plain = goodput_value(plan.step_time, *plan.goodput);
  const double value = by_second ? plan.second_value : plan.value;
  return csv_number(plan.step_time.value() * (value / plain));
}

struct Asked {
  const GroupedPlans& found;
  bool robust = false;
};

// Adds what the search was asked and how far it came. `plan`: null for a group that stands idle.
void add_search(const Asked& asked, const GroupedPlan* plan, CsvRow& row) {
  const GroupedPlans& found = asked.found;
  row.emplace_back("objective", objective_name(found.objective));
  row.emplace_back("second_objective", found.second ? objective_name(*found.second) : "");
  row.emplace_back("complete", found.complete ? "true" : "false");
  row.emplace_back("gap", csv_number(gap_of(found)));
  const bool robust = asked.robust && plan != nullptr;
  row.emplace_back("robust_step_time_s", robust ? csv_robust(*plan, found) : "");
}

void add_plan(const GroupedPlan& plan, CsvRow& row) {
  row.emplace_back("feasible", plan.feasible ? "true" : "false");
  for (auto& field : plan_fields(shown_plan(plan))) row.push_back(std::move(field));
}

// The row of a group that no plan can use, without figures.
CsvRow idle_row(const Scenario& scenario, std::size_t group) {
  CsvRow row = {{"name", scenario.name},
                {"use", "left out"},
                {"step_time_s", ""},
                {"boundary_s", ""},
                {"group", scenario.unlike->groups[group].name},
                {"stages", ""},
                {"layers", ""},
                {"replicas", ""},
                {"micro_batches", ""},
                {"peak_memory_bytes", ""},
                {"cost_per_step_usd", ""},
                {"energy_per_step_joule", ""},
                {"carbon_per_step_g", ""},
                {"memory_share", ""},
                {"goodput", ""},
                {"feasible", ""}};
  const Plan any{.schedule = find_schedule("1f1b")};
  for (auto& [key, value] : plan_fields(any)) row.emplace_back(std::move(key), "");
  return row;
}

// `asked`: null for a plan that no search found.
std::string csv_of(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                   const Asked* asked) {
  std::vector<CsvRow> rows;
  for (const GroupedPlan& plan : plans) {
    for (const std::size_t g : plan.order) {
      const GroupShare& share = plan.shares[g];
      rows.push_back({{"name", scenario.name},
                      {"use", std::string(name_of(plan.use))},
                      {"step_time_s", csv_number(plan.step_time.value())},
                      {"boundary_s", csv_number(plan.boundary)},
                      {"group", scenario.unlike->groups[g].name},
                      {"stages", fmt::format("{}", share.stages)},
                      {"layers", fmt::format("{}", share.layers)},
                      {"replicas", fmt::format("{}", share.replicas)},
                      {"micro_batches", fmt::format("{}", share.microbatches)},
                      {"peak_memory_bytes", csv_number(share.peak_memory.value())},
                      {"cost_per_step_usd", csv_number(plan.cost_per_step)},
                      {"energy_per_step_joule", csv_number(plan.energy_per_step)},
                      {"carbon_per_step_g", csv_carbon(scenario, plan)},
                      {"memory_share", csv_number(plan.fullness)},
                      {"goodput", plan.goodput ? csv_number(*plan.goodput) : ""}});
      add_plan(plan, rows.back());
      if (asked != nullptr) add_search(*asked, &plan, rows.back());
    }
  }
  for (const std::size_t g : groups_without_precision(scenario)) {
    rows.push_back(idle_row(scenario, g));
    if (asked != nullptr) add_search(*asked, nullptr, rows.back());
  }
  return csv_text(rows);
}

}  // namespace

std::string plan_groups_csv(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                            const GroupedPlans& found, bool robust) {
  const Asked asked{found, robust};
  return csv_of(scenario, plans.empty() ? found.closest : plans, &asked);
}

std::string estimate_groups_csv(const Scenario& scenario, const GroupedPlan& plan) {
  return csv_of(scenario, {plan}, nullptr);
}

}  // namespace trainyard
