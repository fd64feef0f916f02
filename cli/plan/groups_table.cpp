#include "cli/plan/groups_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
#include "model/units.h"
#include "planner/heterogeneous/value.h"

namespace trainyard {
namespace {

std::string tokens_cell(const Training& training, const GroupedPlan& plan) {
  const auto tokens = static_cast<double>(training.global_batch * training.sequence_length);
  return number(tokens / plan.step_time.value());
}

std::optional<Column> value_column(Objective objective, bool robust) {
  switch (objective) {
    case Objective::step_time:
      if (robust) return Column{"robust", "s"};
      break;
    case Objective::cost:
      return Column{"cost", "USD/step"};
    case Objective::energy:
      return Column{"energy", "kWh/step"};
    case Objective::memory:
      return Column{"fullest", "%"};
    case Objective::goodput:
      return Column{"goodput", "%"};
  }
  return std::nullopt;
}

// A value in the unit of its column.
std::string value_cell(Objective objective, const GroupedPlan& plan, double value) {
  constexpr double kJoulesAKilowattHour = 3.6e6;
  if (objective == Objective::step_time) return fmt::format("{:.3f}", value);
  if (objective == Objective::cost) return number(plan.cost_per_step->value());
  if (objective == Objective::energy) {
    return number(plan.energy_per_step->value() / kJoulesAKilowattHour);
  }
  return percent(objective == Objective::memory ? plan.fullness : plan.goodput.value_or(1));
}

std::vector<Column> figure_columns(const GroupValues& values) {
  std::vector<Column> columns;
  for (const Objective objective : values.objectives) {
    if (const auto value = value_column(objective, values.robust)) columns.push_back(*value);
  }
  // Tokens per second follow from the step time, and would make the row too long beside other
  // columns.
  if (columns.empty()) columns.push_back({"tokens", "/s"});
  return columns;
}

std::vector<std::string> figure_cells(const Training& training, const GroupedPlan& plan,
                                      const GroupValues& values) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < values.objectives.size(); ++i) {
    const Objective objective = values.objectives[i];
    if (!value_column(objective, values.robust)) continue;
    cells.push_back(value_cell(objective, plan, i == 0 ? plan.value : plan.second_value));
  }
  if (cells.empty()) cells.push_back(tokens_cell(training, plan));
  return cells;
}

void add_rows(const Scenario& scenario, const GroupedPlan& plan, std::size_t number,
              const GroupValues& values, Table& table) {
  const UnlikeCluster& cluster = *scenario.unlike;
  bool is_first = true;
  for (const std::size_t g : plan.order) {
    const GroupShare& share = plan.shares[g];
    std::vector<std::string> row = {fmt::format("{}", number), use_words(plan),
                                    fmt::format("{:.3f}", plan.step_time.value())};
    std::ranges::move(figure_cells(scenario.job.training, plan, values), std::back_inserter(row));
    if (!is_first) std::ranges::fill(row, "");
    for (std::string cell :
         {fmt::format("{} {}", count(cluster.groups[g].devices()), cluster.groups[g].device.name),
          fmt::format("{}", share.stages), fmt::format("{}", share.layers),
          fmt::format("{}", share.replicas), fmt::format("{}", share.microbatches),
          fmt::format("{:.1f}", share.peak_memory.value() / kGiB)}) {
      row.push_back(std::move(cell));
    }
    table.add_row(std::move(row));
    is_first = false;
  }
}

}  // namespace

std::string use_words(const GroupedPlan& plan) {
  switch (plan.use) {
    case GroupUse::pipeline:
      return plan.plan.layers_per_stage.empty() ? "even stages on each" : "stages on each";
    case GroupUse::replicas:
      return "replicas on each";
    case GroupUse::together:
      return "as one cluster";
    case GroupUse::alone:
      break;
  }
  return "one alone";
}

Plan shown_plan(const GroupedPlan& found) {
  Plan plan = plan_of_all(found);
  const Plan& own = found.plan;
  const bool over_all = own.sharding_group == own.data_parallel * own.context_parallel;
  if (over_all) plan.sharding_group = plan.data_parallel * plan.context_parallel;
  return plan;
}

std::string groups_table(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                         const Style& style, const GroupValues& values) {
  std::vector<Column> columns = {{"#"}, {"use", "", Align::left}, {"step", "s"}};
  std::ranges::move(figure_columns(values), std::back_inserter(columns));
  for (const Column& column :
       {Column{"devices", "", Align::left}, Column{"stages"}, Column{"layers"}, Column{"replicas"},
        Column{"micro-", "batches"}, Column{"memory", "GiB"}}) {
    columns.push_back(column);
  }
  Table table(std::move(columns));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    add_rows(scenario, plans[i], i + 1, values, table);
  }
  return table.render(style);
}

}  // namespace trainyard
