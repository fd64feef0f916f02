#include "cli/plan_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "cli/plan_text.h"
#include "cli/table.h"
#include "cli/text.h"
#include "model/cost/reliability.h"

namespace trainyard {
namespace {

struct DegreeColumn {
  std::string_view head;
  int Plan::*degree;
  bool always;  // shown even when it is 1 in every plan
};

constexpr DegreeColumn kDegreeColumns[] = {
    {"tp", &Plan::tensor_parallel, true},
    {"cp", &Plan::context_parallel, false},
    {"pp", &Plan::pipeline_parallel, true},
    {"vp", &Plan::virtual_stages, false},
    {"dp", &Plan::data_parallel, true},
    {"ep", &Plan::expert_parallel, false},
    {"etp", &Plan::expert_tensor_parallel, false},
    {"mb", &Plan::micro_batch, true},
    {"zero", &Plan::zero_stage, true},
};

std::vector<DegreeColumn> shown_degrees(const std::vector<Candidate>& plans) {
  std::vector<DegreeColumn> shown;
  for (const DegreeColumn& column : kDegreeColumns) {
    const bool matters = std::any_of(plans.begin(), plans.end(),
                                     [&](const Candidate& c) { return c.plan.*column.degree > 1; });
    if (column.always || matters) {
      shown.push_back(column);
    }
  }
  return shown;
}

// A key beside the degrees, shown where the plans differ in it.
struct FinerColumn {
  std::string_view head, key;
};
constexpr FinerColumn kFinerColumns[] = {
    {"sp", "sequence_parallel"},  {"cp by", "context_parallel_algorithm"},
    {"shards", "sharding_group"}, {"offload", "offload"},
    {"rank order", "rank_order"}, {"collective", "collective"},
};

struct FinerCells {
  std::string_view head;
  std::vector<std::string> cells;  // of every plan
};

// Plans for which a key does not matter ("–") are told apart by their degrees; but with which
// algorithm a plan has its context parallelism is worth a column.
bool worth_a_column(const FinerColumn& column, const std::vector<std::string>& cells) {
  std::set<std::string_view> values(cells.begin(), cells.end());
  if (column.key != "context_parallel_algorithm") values.erase("–");
  return values.size() > 1;
}

std::vector<FinerCells> finer_cells(const std::vector<Candidate>& plans) {
  std::vector<FinerCells> shown;
  for (const FinerColumn& column : kFinerColumns) {
    FinerCells cells{column.head, {}};
    cells.cells.reserve(plans.size());
    for (const Candidate& candidate : plans) {
      const auto fields = plan_fields(candidate.plan);
      const auto field = std::find_if(fields.begin(), fields.end(),
                                      [&](const auto& entry) { return entry.first == column.key; });
      cells.cells.push_back(field->second.empty() ? "–" : field->second);
    }
    if (worth_a_column(column, cells.cells)) shown.push_back(std::move(cells));
  }
  return shown;
}

// ---- What each plan gives -------------------------------------------------------------

using PlanCell = std::string (*)(const Question& question, const PlanOrder& order,
                                 const Candidate& candidate);
struct ResultColumn {
  Column column;
  PlanCell cell;
};

double value_by(const Question& question, const PlanOrder& order, Objective objective,
                const Candidate& candidate) {
  return objective_value(question.job, order.valuation, objective, candidate.plan,
                         candidate.estimate);
}

std::string tokens_a_device(const Question&, const PlanOrder&, const Candidate& c) {
  return number(c.estimate.tokens_per_second / c.plan.devices());
}

std::string cost_cell(const Question& question, const PlanOrder& order, const Candidate& c) {
  return number(value_by(question, order, Objective::cost, c));
}

std::string energy_cell(const Question& question, const PlanOrder& order, const Candidate& c) {
  constexpr double kJoulesAKilowattHour = 3.6e6;
  return fmt::format("{:.3f}",
                     value_by(question, order, Objective::energy, c) / kJoulesAKilowattHour);
}

std::string goodput_cell(const Question& question, const PlanOrder& order, const Candidate& c) {
  const Valuation& valuation = order.valuation;
  return percent(
      estimate_goodput(question.job, c.plan, valuation.reliability, valuation.checkpoint).goodput);
}

std::string robust_cell(const Question&, const PlanOrder& order, const Candidate& c) {
  return fmt::format("{:.3f}",
                     robust_step_time(order.valuation.reliability, c.plan, c.estimate).value());
}

// What the plans are ordered by, where no other column says it.
std::vector<ResultColumn> order_columns(const PlanOrder& order) {
  const auto asked = [&order](Objective objective) {
    return order.objective == objective || order.second == objective;
  };
  std::vector<ResultColumn> columns;
  if (asked(Objective::cost)) columns.push_back({{"cost", "USD/step"}, cost_cell});
  if (asked(Objective::energy)) columns.push_back({{"energy", "kWh/step"}, energy_cell});
  if (asked(Objective::goodput)) columns.push_back({{"goodput", "%"}, goodput_cell});
  if (order.valuation.robust) columns.push_back({{"robust", "s"}, robust_cell});
  return columns;
}

std::vector<ResultColumn> result_columns(const PlanOrder& order, bool seconds) {
  const PlanCell step = seconds
                            ? PlanCell{[](const Question&, const PlanOrder&, const Candidate& c) {
                                return fmt::format("{:.3f}", c.estimate.step_time.value());
                              }}
                            : PlanCell{[](const Question&, const PlanOrder&, const Candidate& c) {
                                return fmt::format("{:.2f}", 1e3 * c.estimate.step_time.value());
                              }};
  std::vector<ResultColumn> columns = {
      {{"step", seconds ? "s" : "ms"}, step},
      {{"MFU", "%"},
       [](const Question&, const PlanOrder&, const Candidate& c) {
         return percent(c.estimate.mfu);
       }},
      {{"tokens", "/s/device"}, tokens_a_device},
      {{"memory", "GiB"}, [](const Question&, const PlanOrder&, const Candidate& c) {
         return fmt::format("{:.1f}", c.estimate.peak_memory.value() / kGib);
       }}};
  for (ResultColumn& column : order_columns(order)) columns.push_back(std::move(column));
  return columns;
}

std::vector<Column> heads_of(const std::vector<DegreeColumn>& degrees,
                             const std::vector<FinerCells>& finer,
                             const std::vector<ResultColumn>& results) {
  std::vector<Column> columns = {{"#"}};
  columns.reserve(degrees.size() + finer.size() + results.size() + 3);
  for (const DegreeColumn& column : degrees) columns.push_back({std::string(column.head)});
  for (const FinerCells& column : finer) {
    columns.push_back({std::string(column.head), "", Align::left});
  }
  columns.push_back({"recompute", "", Align::left});
  columns.push_back({"schedule", "", Align::left});
  for (const ResultColumn& column : results) columns.push_back(column.column);
  return columns;
}

}  // namespace

std::string_view objective_words(Objective objective) {
  switch (objective) {
    case Objective::step_time:
      return "step time";
    case Objective::cost:
      return "cost";
    case Objective::energy:
      return "energy";
    case Objective::memory:
      return "memory";
    case Objective::goodput:
      return "step time over goodput";
  }
  return "";
}

std::string plans_table(const Question& question, const std::vector<Candidate>& plans,
                        const PlanOrder& order, const Style& style) {
  const std::vector<DegreeColumn> degrees = shown_degrees(plans);
  const std::vector<FinerCells> finer = finer_cells(plans);
  const bool seconds = plans.front().estimate.step_time >= Seconds(1);
  const std::vector<ResultColumn> results = result_columns(order, seconds);
  std::vector<Column> heads = heads_of(degrees, finer, results);
  const std::size_t width = heads.size();
  Table table(std::move(heads));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i].plan;
    std::vector<std::string> row = {fmt::format("{}", i + 1)};
    row.reserve(width);
    for (const DegreeColumn& column : degrees) {
      row.push_back(fmt::format("{}", plan.*column.degree));
    }
    for (const FinerCells& column : finer) row.push_back(column.cells[i]);
    row.push_back(recompute_value(plan));
    row.emplace_back(plan.pipeline_parallel > 1 ? plan.schedule->name : "–");
    for (const ResultColumn& column : results) {
      row.push_back(column.cell(question, order, plans[i]));
    }
    table.add_row(std::move(row));
  }
  return table.render(style);
}

std::vector<Candidate> distinct_plans(const Question& question, std::vector<Candidate> front,
                                      const PlanOrder& order) {
  constexpr double kGain = 0.01;
  std::vector<Candidate> distinct;
  double last = std::numeric_limits<double>::infinity();
  for (Candidate& candidate : front) {
    const double value = value_by(question, order, *order.second, candidate);
    if (value > (1 - kGain) * last) continue;
    last = value;
    distinct.push_back(std::move(candidate));
  }
  return distinct;
}

}  // namespace trainyard
