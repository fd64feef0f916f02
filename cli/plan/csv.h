// `trainyard plan --format csv` for one cluster and one size: a row for each of the best plans.
#pragma once

#include <string>

#include "cli/plan/table.h"
#include "cli/text/csv.h"
#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

// After the plan and its estimate every row has the same columns, under the keys of the JSON: what
// was minimised, whether that is proved optimal and otherwise the gap, the values that an objective
// adds, and the simulated results. A cell is empty where that was not asked for. If no plan fits,
// the rows are those that come closest.
std::string plan_csv(const Question& question, const SearchResult& result, const PlanOrder& order);

// Adds goodput and robust step time of the best plan, empty where they were not asked for. `best`
// is null where there is none.
void add_values(const PreparedJob& job, const PlanOrder& order, const Candidate* best, CsvRow& row);

}  // namespace trainyard
