#include "planner/improved_search.h"

#include <algorithm>
#include <utility>

#include "planner/rank_orders.h"
#include "planner/time_limit.h"

namespace trainyard {

SearchOptions with_kept_for_improvement(SearchOptions options) {
  options.top = std::max(options.top, kImprovedAmong);
  options.keeps_to_deal = !options.second && options.base.layers_per_stage.empty();
  return options;
}

SearchResult improved_search(const PreparedJob& job, const SearchOptions& options,
                             const Evaluator& evaluate) {
  const Stopwatch watch;
  SearchOptions kept = with_kept_for_improvement(options);
  SearchResult found = search(job, kept, evaluate);
  const std::vector<Candidate>& best = found.plans_or_closest();
  // An estimate without stages cannot tell which layers to move.
  const bool has_stages = !best.empty() && !best.front().estimate.stages.empty();
  if (found.optimal && has_stages) {
    kept.progress = nullptr;
    if (kept.time_limit > Seconds(0)) {
      kept.time_limit = left_until(kept.time_limit, watch.elapsed());
    }
    auto improved = improve(job, kept, best, evaluate, found.to_deal);
    const bool taken = improved && improved->candidate.estimate.feasible &&
                       runs_order(job.job, improved->candidate.plan);
    if (taken) found.plans.insert(found.plans.begin(), std::move(improved->candidate));
  }
  const auto shown = static_cast<std::size_t>(std::max(1, options.top));
  for (std::vector<Candidate>* plans : {&found.plans, &found.closest}) {
    if (plans->size() > shown) {
      plans->erase(plans->begin() + static_cast<std::ptrdiff_t>(shown), plans->end());
    }
  }
  return found;
}

}  // namespace trainyard
