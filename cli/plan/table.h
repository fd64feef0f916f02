// The table of plans of `trainyard plan`: degrees, what else tells the plans apart, what each
// gives, and the value by which they are ordered where step time and memory do not say it.
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

// What the plans are ordered by.
struct PlanOrder {
  Objective objective = Objective::step_time;
  std::optional<Objective> second;  // of a Pareto front
  Valuation valuation;

  bool asks_for(Objective asked) const { return objective == asked || second == asked; }
};

// A figure of a plan that orders it.
struct ValueColumn {
  Column column;
  std::string (*cell)(const PreparedJob& job, const PlanOrder& order, const Candidate& candidate);
};
// What plans are ordered by, where neither step time nor memory says it.
std::vector<ValueColumn> value_columns(const PlanOrder& order);

// "step time", "cost, at the high end of its interval", …
std::string order_words(const PlanOrder& order);

// Before a table of them.
inline constexpr std::string_view kChoicesHeading = "the degrees and choices of each\n";

// What a column tells of a row: which one it is, what its plan gives, and what the plan is.
enum class ColumnOf { labels, results, choices };

// A column and its cells, row by row.
struct PlanColumn {
  Column column;
  std::vector<std::string> cells;
  ColumnOf of = ColumnOf::labels;
};

// Where the table would be wider than a page, choices that all plans have stand in a line before
// it; where that is not enough, results and choices in tables of their own, each as wide as a page
// and behind the labels. Requires: labels, at least one row, and a cell of every column for each.
std::string page_wide(std::vector<PlanColumn> columns, const Style& style);

// How many of the plans were played.
std::size_t played_of(const std::vector<Candidate>& plans);

// Requires: at least one plan.
std::string plans_table(const Question& question, const std::vector<Candidate>& plans,
                        const PlanOrder& order, const Style& style);

// The choices of plans of different sizes, behind the columns that tell these apart. Requires: at
// least one plan, and a cell of every label for each.
std::string choices_table(std::vector<PlanColumn> labels, const std::vector<const Plan*>& plans,
                          const Style& style);

// Of a Pareto front those that were played or gain at least a hundredth of the second objective on
// the one before: the others look the same to a reader.
std::vector<Candidate> distinct_plans(const Question& question, std::vector<Candidate> front,
                                      const PlanOrder& order);

// "step time", "energy", …
std::string_view objective_words(Objective objective);

}  // namespace trainyard
