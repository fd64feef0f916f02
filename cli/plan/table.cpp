#include "cli/plan/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "cli/text/layout/columns.h"
#include "cli/text/plan.h"
#include "model/cost/reliability.h"
#include "model/units.h"

namespace trainyard {
namespace {

// A table of plans, whose first one is described in full elsewhere, or of sizes, for which it says
// all.
enum class TableOf { plans, sizes };

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

// A key beside the degrees, shown where it tells more than its usual value.
struct FinerColumn {
  std::string_view head, key, usual;
};
constexpr FinerColumn kFinerColumns[] = {
    {"sp", "sequence_parallel", "true"},
    {"cp by", "context_parallel_algorithm", "–"},
    {"shards", "sharding_group", "all"},
    {"offload", "offload", "none"},
    {"rank order", "rank_order", "tp-cp-ep-dp-pp"},
    {"collective", "collective", "fastest"},
};

// Keys whose value, where all plans share it, is left to the description of the first plan.
bool is_said_elsewhere(const FinerColumn& column) {
  return column.key == "sequence_parallel" || column.key == "context_parallel_algorithm";
}

// Whether a key gets a column. Plans for which it does not matter ("–") are told apart by their
// degrees; but the algorithm of context parallelism is worth a column where only some plans have
// one.
bool worth_a_column(const FinerColumn& column, const std::vector<std::string>& cells,
                    TableOf table) {
  std::set<std::string_view> values(cells.begin(), cells.end());
  if (column.key != "context_parallel_algorithm") values.erase("–");
  if (values.size() != 1) return !values.empty();
  const bool may_be_alone = table == TableOf::sizes || !is_said_elsewhere(column);
  return may_be_alone && *values.begin() != column.usual;
}

void add_degrees(const std::vector<const Plan*>& plans, std::vector<PlanColumn>& columns) {
  for (const DegreeColumn& degree : kDegreeColumns) {
    const bool matters = std::any_of(plans.begin(), plans.end(),
                                     [&](const Plan* plan) { return plan->*degree.degree > 1; });
    if (!degree.always && !matters) continue;
    PlanColumn column{{std::string(degree.head)}, {}, ColumnOf::choices};
    for (const Plan* plan : plans) column.cells.push_back(fmt::format("{}", plan->*degree.degree));
    columns.push_back(std::move(column));
  }
}

void add_finer(const std::vector<const Plan*>& plans, TableOf table,
               std::vector<PlanColumn>& columns) {
  for (const FinerColumn& finer : kFinerColumns) {
    PlanColumn column{{std::string(finer.head), "", Align::left}, {}, ColumnOf::choices};
    for (const Plan* plan : plans) {
      const auto fields = plan_fields(*plan);
      const auto field = std::find_if(fields.begin(), fields.end(),
                                      [&](const auto& entry) { return entry.first == finer.key; });
      column.cells.push_back(field->second.empty() ? "–" : field->second);
    }
    if (worth_a_column(finer, column.cells, table)) columns.push_back(std::move(column));
  }
}

void add_choices(const std::vector<const Plan*>& plans, TableOf table,
                 std::vector<PlanColumn>& columns) {
  add_degrees(plans, columns);
  add_finer(plans, table, columns);
  PlanColumn recompute{{"recompute", "", Align::left}, {}, ColumnOf::choices};
  PlanColumn schedule{{"schedule", "", Align::left}, {}, ColumnOf::choices};
  for (const Plan* plan : plans) {
    recompute.cells.push_back(recompute_value(*plan));
    schedule.cells.emplace_back(plan->pipeline_parallel > 1 ? plan->schedule->name : "–");
  }
  columns.push_back(std::move(recompute));
  columns.push_back(std::move(schedule));
}

std::string rendered(const std::vector<PlanColumn>& columns, const Style& style) {
  std::vector<Column> heads;
  heads.reserve(columns.size());
  for (const PlanColumn& column : columns) heads.push_back(column.column);
  Table table(std::move(heads));
  for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
    std::vector<std::string> cells;
    cells.reserve(columns.size());
    for (const PlanColumn& column : columns) cells.push_back(column.cells[row]);
    table.add_row(std::move(cells));
  }
  return table.render(style);
}

bool is_too_wide(std::string_view table) {
  while (!table.empty()) {
    const std::size_t end = table.find('\n');
    if (display_width(table.substr(0, end)) > kLineWidth) return true;
    table.remove_prefix(end + 1);
  }
  return false;
}

// Removes the columns of choices that are the same in all plans, and returns them as a line.
std::string take_what_all_have(std::vector<PlanColumn>& columns) {
  std::vector<std::string> words;
  std::erase_if(columns, [&words](const PlanColumn& column) {
    const std::vector<std::string>& cells = column.cells;
    const bool alike = column.of == ColumnOf::choices &&
                       std::all_of(cells.begin(), cells.end(), [&cells](const std::string& cell) {
                         return cell == cells.front();
                       });
    if (alike && cells.front() != "–") {
      words.push_back(fmt::format("{} {}", column.column.head, cells.front()));
    }
    return alike;
  });
  return words.empty() ? "" : wrap(fmt::format("all plans: {}", fmt::join(words, " · ")));
}

std::vector<PlanColumn> columns_of(const std::vector<PlanColumn>& columns, ColumnOf of) {
  std::vector<PlanColumn> some;
  std::ranges::copy_if(columns, std::back_inserter(some),
                       [of](const PlanColumn& column) { return column.of == of; });
  return some;
}

// Splits the columns into tables as wide as a page, each with the labels.
std::string paged(const std::vector<PlanColumn>& labels, const std::vector<PlanColumn>& columns,
                  const Style& style) {
  std::string text, table;
  std::vector<PlanColumn> page = labels;
  for (const PlanColumn& column : columns) {
    page.push_back(column);
    std::string wider = rendered(page, style);
    if (is_too_wide(wider) && !table.empty()) {
      text += table + "\n";
      page = labels;
      page.push_back(column);
      wider = rendered(page, style);
    }
    table = std::move(wider);
  }
  return text + table;
}

// ---- What each plan gives -------------------------------------------------------------

double value_by(const PreparedJob& job, const PlanOrder& order, Objective objective,
                const Candidate& candidate) {
  return objective_value(job, order.valuation, objective, candidate.plan, candidate.estimate);
}

std::string cost_cell(const PreparedJob& job, const PlanOrder& order, const Candidate& c) {
  return number(value_by(job, order, Objective::cost, c));
}

std::string energy_cell(const PreparedJob& job, const PlanOrder& order, const Candidate& c) {
  constexpr double kJoulesAKilowattHour = 3.6e6;
  return number(value_by(job, order, Objective::energy, c) / kJoulesAKilowattHour);
}

std::string goodput_cell(const PreparedJob& job, const PlanOrder& order, const Candidate& c) {
  const Valuation& valuation = order.valuation;
  return percent(estimate_goodput(job, c.plan, c.estimate.step_time, valuation.reliability,
                                  valuation.checkpoint)
                     .goodput);
}

std::string robust_cell(const PreparedJob&, const PlanOrder& order, const Candidate& c) {
  return fmt::format("{:.3f}",
                     robust_step_time(order.valuation.reliability, c.plan, c.estimate).value());
}

using PlanCell = std::string (*)(const Candidate& candidate);
struct ResultColumn {
  Column column;
  PlanCell cell;
};

std::string in_seconds(Seconds time) { return fmt::format("{:.3f}", time.value()); }
std::string in_milliseconds(Seconds time) { return fmt::format("{:.2f}", 1e3 * time.value()); }

// The simulated step time; "–": not simulated.
template <std::string (*unit)(Seconds time)>
std::string simulated_cell(const Candidate& c) {
  const auto& found = c.confirmation;
  return found && found->simulated ? unit(found->simulated->step_time) : "–";
}

template <std::string (*unit)(Seconds time)>
std::string step_cell(const Candidate& c) {
  return unit(c.estimate.step_time);
}

std::vector<ResultColumn> result_columns(const std::vector<Candidate>& plans) {
  const bool seconds = plans.front().estimate.step_time >= Seconds(1);
  const std::string unit = seconds ? "s" : "ms";
  std::vector<ResultColumn> columns = {
      {{"step", unit}, seconds ? step_cell<in_seconds> : step_cell<in_milliseconds>}};
  if (played_of(plans) > 0) {
    columns.push_back({{"simulated", unit},
                       seconds ? simulated_cell<in_seconds> : simulated_cell<in_milliseconds>});
  }
  columns.insert(
      columns.end(),
      {{{"MFU", "%"}, [](const Candidate& c) { return percent(c.estimate.mfu); }},
       {{"tokens/s", "/device"},
        [](const Candidate& c) { return number(c.estimate.tokens_per_second / c.plan.devices()); }},
       {{"memory", "GiB"}, [](const Candidate& c) {
          return fmt::format("{:.1f}", c.estimate.peak_memory.value() / kGiB);
        }}});
  return columns;
}

}  // namespace

std::string page_wide(std::vector<PlanColumn> columns, const Style& style) {
  std::string table = rendered(columns, style);
  if (!is_too_wide(table)) return table;
  const bool several = columns.front().cells.size() > 1;
  const std::string all = several ? take_what_all_have(columns) : "";
  table = rendered(columns, style);
  if (!is_too_wide(table)) return all + table;
  const std::vector<PlanColumn> labels = columns_of(columns, ColumnOf::labels);
  const std::string results = paged(labels, columns_of(columns, ColumnOf::results), style);
  const std::string choices = paged(labels, columns_of(columns, ColumnOf::choices), style);
  if (results.empty() || choices.empty()) return results.empty() ? all + choices : results;
  return results + "\n" + std::string(kChoicesHeading) + all + choices;
}

std::string_view objective_words(Objective objective) {
  if (objective == Objective::step_time) return "step time";
  return objective == Objective::goodput ? "step time over goodput" : objective_name(objective);
}

std::vector<ValueColumn> value_columns(const PlanOrder& order) {
  std::vector<ValueColumn> columns;
  if (order.asks_for(Objective::cost)) columns.push_back({{"cost", "USD/step"}, cost_cell});
  if (order.asks_for(Objective::energy)) columns.push_back({{"energy", "kWh/step"}, energy_cell});
  if (order.asks_for(Objective::goodput)) columns.push_back({{"goodput", "%"}, goodput_cell});
  if (order.valuation.robust) columns.push_back({{"robust", "s"}, robust_cell});
  return columns;
}

std::string order_words(const PlanOrder& order) {
  return fmt::format("{}{}", objective_words(order.objective),
                     order.valuation.robust ? ", at the high end of its interval" : "");
}

std::size_t played_of(const std::vector<Candidate>& plans) {
  return static_cast<std::size_t>(std::ranges::count_if(
      plans, [](const Candidate& candidate) { return candidate.confirmation.has_value(); }));
}

std::string plans_table(const Question& question, const std::vector<Candidate>& plans,
                        const PlanOrder& order, const Style& style) {
  std::vector<const Plan*> chosen;
  std::vector<PlanColumn> columns = {{{"#"}, {}}};
  for (const Candidate& candidate : plans) {
    chosen.push_back(&candidate.plan);
    columns[0].cells.push_back(fmt::format("{}", chosen.size()));
  }
  add_choices(chosen, TableOf::plans, columns);
  const auto add = [&](Column column, const auto& cell) {
    PlanColumn result{std::move(column), {}, ColumnOf::results};
    for (const Candidate& candidate : plans) result.cells.push_back(cell(candidate));
    columns.push_back(std::move(result));
  };
  for (ResultColumn& result : result_columns(plans)) add(std::move(result.column), result.cell);
  for (ValueColumn& value : value_columns(order)) {
    add(std::move(value.column),
        [&](const Candidate& candidate) { return value.cell(question.job, order, candidate); });
  }
  return page_wide(std::move(columns), style);
}

std::string choices_table(std::vector<PlanColumn> labels, const std::vector<const Plan*>& plans,
                          const Style& style) {
  add_choices(plans, TableOf::sizes, labels);
  return page_wide(std::move(labels), style);
}

std::vector<Candidate> distinct_plans(const Question& question, std::vector<Candidate> front,
                                      const PlanOrder& order) {
  constexpr double kGain = 0.01;
  std::vector<Candidate> distinct;
  double last = std::numeric_limits<double>::infinity();
  for (Candidate& candidate : front) {
    const double value = value_by(question.job, order, *order.second, candidate);
    if (!candidate.confirmation && value > (1 - kGain) * last) continue;
    last = std::min(last, value);
    distinct.push_back(std::move(candidate));
  }
  return distinct;
}

}  // namespace trainyard
