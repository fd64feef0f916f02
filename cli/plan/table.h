// The table of plans of `trainyard plan`: parallel degrees, other choices that tell the plans
// apart, their results, and the value by which they are ordered if it is neither step time nor
// memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/text/layout/style.h"
#include "cli/text/layout/table.h"
#include "planner/objective.h"
#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

// By what the plans are ordered.
struct PlanOrder {
  Objective objective = Objective::step_time;
  std::optional<Objective> second;  // second objective of a Pareto front
  Valuation valuation;

  bool asks_for(Objective asked) const { return objective == asked || second == asked; }
};

// A column with a value by which plans are ordered.
struct ValueColumn {
  Column column;
  std::string (*cell)(const PreparedJob& job, const PlanOrder& order, const Candidate& candidate);
};
// Columns for the values by which plans are ordered, without step time and memory, which always
// have one.
std::vector<ValueColumn> value_columns(const PlanOrder& order);

// "step time", "cost, at the high end of its interval", …
std::string order_words(const PlanOrder& order);

// Heading of a table of choices.
inline constexpr std::string_view kChoicesHeading = "the degrees and choices of each\n";

// What a column shows: which row it is, the plan's results, or the plan's choices.
enum class ColumnOf { labels, results, choices };

// A column and its cells, row by row.
struct PlanColumn {
  Column column;
  std::vector<std::string> cells;
  ColumnOf of = ColumnOf::labels;
};

// Renders the columns within the width of a page. Where one table is too wide, choices that all
// plans share are first moved to a line above it; if that does not suffice, results and choices get
// tables of their own, each cut into pages that repeat the labels. Requires: labels, at least one
// row, and a cell in every column for each row.
std::string page_wide(std::vector<PlanColumn> columns, const Style& style);

// How many of the plans were simulated.
std::size_t played_of(const std::vector<Candidate>& plans);

// Requires: at least one plan.
std::string plans_table(const Question& question, const std::vector<Candidate>& plans,
                        const PlanOrder& order, const Style& style);

// The choices of plans for different sizes, after the `labels` that tell the sizes apart. Requires:
// at least one plan, and a cell of every label for each.
std::string choices_table(std::vector<PlanColumn> labels, const std::vector<const Plan*>& plans,
                          const Style& style);

// The plans of a Pareto front that were simulated, or that gain at least 1 % of the second
// objective over the one shown before: the others look the same to a reader.
std::vector<Candidate> distinct_plans(const Question& question, std::vector<Candidate> front,
                                      const PlanOrder& order);

// "step time", "energy", …
std::string_view objective_words(Objective objective);

}  // namespace trainyard
