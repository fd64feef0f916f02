#include "planner/findings/confirm.h"

#include <algorithm>
#include <utility>

namespace trainyard {
namespace {

Confirmation confirmation_of(const Candidate& candidate, const Confirmer& second) {
  auto found = second(candidate.plan);
  if (!found) return {.reason = found.error().message};
  const Estimate& first = candidate.estimate;
  const bool inside =
      found->step_time >= first.step_time_low && found->step_time <= first.step_time_high;
  return {.simulated = *std::move(found), .departs = !inside};
}

}  // namespace

const Estimate& best_known(const Candidate& candidate) {
  const auto& found = candidate.confirmation;
  return found && found->simulated ? *found->simulated : candidate.estimate;
}

void confirm(const PreparedJob& job, const SearchOptions& options, int count,
             const Confirmer& second, std::vector<Candidate>& plans) {
  const auto most = std::min(plans.size(), static_cast<std::size_t>(count));
  const auto stopped = [&options] {
    return options.interrupted != nullptr && options.interrupted->load();
  };
  std::size_t confirmed = 0;
  bool some_fit = false;
  while (confirmed < (some_fit ? most : plans.size()) && !stopped()) {
    plans[confirmed].confirmation = confirmation_of(plans[confirmed], second);
    some_fit = some_fit || best_known(plans[confirmed]).feasible;
    ++confirmed;
  }
  const auto place = [&](const Candidate& candidate) {
    const Estimate& found = best_known(candidate);
    return std::pair(!found.feasible, objective_value(job, options.valuation, options.objective,
                                                      candidate.plan, found));
  };
  std::stable_sort(plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(confirmed),
                   [&](const Candidate& a, const Candidate& b) { return place(a) < place(b); });
}

}  // namespace trainyard
