#include "cli/plan/csv.h"

#include <fmt/format.h>

#include "model/cost/reliability.h"

namespace trainyard {
namespace {

std::string truth(bool value) { return value ? "true" : "false"; }

void add_search(const SearchResult& result, CsvRow& row) {
  row.emplace_back("objective", objective_name(result.objective));
  row.emplace_back("second_objective", result.second ? objective_name(*result.second) : "");
  row.emplace_back("optimal", truth(result.optimal));
  row.emplace_back("gap", csv_number(result.gap));
}

void add_confirmation(const std::optional<Confirmation>& confirmed, CsvRow& row) {
  const bool simulated = confirmed && confirmed->simulated;
  row.emplace_back("simulated_step_time_s",
                   simulated ? csv_number(confirmed->simulated->step_time.value()) : "");
  row.emplace_back("simulation_departs", simulated ? truth(confirmed->departs) : "");
  row.emplace_back("not_simulated_because", confirmed ? confirmed->reason : "");
  row.emplace_back("simulated_peak_memory_bytes",
                   simulated ? csv_number(confirmed->simulated->peak_memory.value()) : "");
  row.emplace_back("simulated_feasible", simulated ? truth(confirmed->simulated->feasible) : "");
}

}  // namespace

void add_values(const PreparedJob& job, const PlanOrder& order, const Candidate* best,
                CsvRow& row) {
  const Valuation& valuation = order.valuation;
  std::string goodput, robust;
  if (best != nullptr && order.asks_for(Objective::goodput)) {
    goodput = csv_number(estimate_goodput(job, best->plan, best->estimate.step_time,
                                          valuation.reliability, valuation.checkpoint)
                             .goodput);
  }
  if (best != nullptr && valuation.robust) {
    robust =
        csv_number(robust_step_time(valuation.reliability, best->plan, best->estimate).value());
  }
  row.emplace_back("goodput", std::move(goodput));
  row.emplace_back("robust_step_time_s", std::move(robust));
}

std::string plan_csv(const Question& question, const SearchResult& result, const PlanOrder& order) {
  std::vector<CsvRow> rows;
  for (const Candidate& candidate : result.plans_or_closest()) {
    CsvRow row = csv_row(question.scenario.name, candidate);
    add_search(result, row);
    add_values(question.job, order, &candidate, row);
    add_confirmation(candidate.confirmation, row);
    rows.push_back(std::move(row));
  }
  return csv_text(rows);
}

}  // namespace trainyard
