// `trainyard plan --format csv` of one cluster and one size: a row for each of the best plans.
#pragma once

#include <string>

#include "cli/plan/table.h"
#include "cli/text/csv.h"
#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

// Behind the plan and its estimate stands the same in every answer, under the keys of the JSON:
// what was minimised, whether that is proved and else how far it may be off, what an objective
// adds, and what simulation found. Empty: not asked for. Where no plan fits, the rows are those
// that come closest.
std::string plan_csv(const Question& question, const SearchResult& result, const PlanOrder& order);

// Goodput and robust step time of a best plan, where they are asked for. `best`: null where there
// is none.
void add_values(const PreparedJob& job, const PlanOrder& order, const Candidate* best, CsvRow& row);

}  // namespace trainyard
