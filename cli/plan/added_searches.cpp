#include "cli/plan/added_searches.h"

#include <chrono>
#include <optional>
#include <utility>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "planner/findings/marginal.h"
#include "planner/findings/ways_out.h"

namespace trainyard {

AddedSearches::AddedSearches(const Question& question, SearchOptions options,
                             const SearchResult& result)
    : what_(result.plans.empty() ? "looking for ways out" : "valuing resources") {
  options.progress = [this](double fraction) { done_ = fraction; };
  std::optional<Candidate> winner;
  if (!result.plans.empty()) winner = result.plans.front();
  found_ = std::async(std::launch::async, [&job = question.job, options, winner] {
    PlanFindings found;
    if (winner) {
      found.marginal = marginal_values(job, options, *winner, analytic_evaluator);
      found.fewer_nodes = fewer_nodes(job.job, options, *winner, analytic_evaluator);
    } else {
      found.ways_out = ways_out(job.job, options, analytic_evaluator);
    }
    return found;
  });
}

void AddedSearches::take(PlanFindings& findings) {
  Progress progress(what_);
  while (found_.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    progress.show(done_);
  }
  PlanFindings found = found_.get();
  if (was_stopped()) return;
  findings.marginal = std::move(found.marginal);
  findings.ways_out = std::move(found.ways_out);
  const bool faster_on_all = found.fewer_nodes && findings.improvement_fits() &&
                             findings.improvement->candidate.estimate.step_time <
                                 found.fewer_nodes->candidate.estimate.step_time;
  if (!faster_on_all) findings.fewer_nodes = std::move(found.fewer_nodes);
}

}  // namespace trainyard
