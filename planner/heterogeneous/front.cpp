#include "planner/heterogeneous/front.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace trainyard {

// Along the front second values fall as first ones rise: the last plan that is no worse in the
// first value has the least second one.
double GroupedFront::least_second(double first) const {
  const auto behind =
      std::upper_bound(entries_.begin(), entries_.end(), first,
                       [](double value, const Entry& entry) { return value < entry.plan.value; });
  if (behind == entries_.begin()) return std::numeric_limits<double>::infinity();
  return std::prev(behind)->plan.second_value;
}

double GroupedFront::least_first(double second) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [second](const Entry& entry) {
    return entry.plan.second_value <= second;
  });
  return found == entries_.end() ? std::numeric_limits<double>::infinity() : found->plan.value;
}

bool GroupedFront::offer(GroupedPlan plan) {
  const Values values = values_of(plan);
  if (!plan.feasible || least_second(values.first) <= values.second) return false;
  std::erase_if(entries_,
                [&values](const Entry& entry) { return dominates(values, values_of(entry.plan)); });
  const auto place = std::find_if(entries_.begin(), entries_.end(), [&values](const Entry& entry) {
    return entry.plan.value > values.first;
  });
  entries_.insert(place, Entry{.plan = std::move(plan)});
  return true;
}

std::optional<GroupedPlan> GroupedFront::take_open() {
  const auto open = std::ranges::find(entries_, true, &Entry::is_open);
  if (open == entries_.end()) return std::nullopt;
  open->is_open = false;
  return open->plan;
}

double next_memory(const GroupSearchOptions& options, const GroupedFront& front, double most,
                   double fullest, const Values& best) {
  constexpr double kStep = 1 - 1.0 / 256;
  constexpr double kObeyed = 1.02;  // above, what is named decides the memory, not the limit
  const bool is_first = options.objective == Objective::memory;
  if (!is_first && options.second != Objective::memory) return 0;
  if (fullest > most * kObeyed) return 0;
  const double others = is_first ? front.least_first(best.second) : front.least_second(best.first);
  return std::min({most, fullest, others}) * kStep;
}

std::vector<GroupedPlan> GroupedFront::plans() const {
  std::vector<GroupedPlan> plans;
  plans.reserve(entries_.size());
  for (const Entry& entry : entries_) plans.push_back(entry.plan);
  return plans;
}

}  // namespace trainyard
