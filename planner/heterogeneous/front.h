// The Pareto front of two objectives over plans for groups of unlike nodes: those that no other
// plan dominates. Of plans with equal values the first that was offered stays.
#pragma once

#include <optional>
#include <vector>

#include "planner/heterogeneous/groups.h"
#include "planner/objective.h"

namespace trainyard {

class GroupedFront {
 public:
  // Whether the plan is on the front, so far.
  bool offer(GroupedPlan plan);
  // The least second value of plans whose first value is no worse than `first`; infinite: none is.
  double least_second(double first) const;
  double least_first(double second) const;

  // A plan of the team being searched whose neighbours were not asked for yet; empty: none.
  std::optional<GroupedPlan> take_open();
  // Ends the search of a team: applies `change` to the plans that were offered since the last call
  // and closes them for take_open.
  template <typename Change>
  void settle(const Change& change) {
    for (Entry& entry : entries_) {
      if (!entry.is_settled) entry.plan = change(std::move(entry.plan));
      entry.is_settled = true;
      entry.is_open = false;
    }
  }

  std::vector<GroupedPlan> plans() const;  // by the first value

 private:
  struct Entry {
    GroupedPlan plan;
    bool is_open = true;
    bool is_settled = false;
  };
  std::vector<Entry> entries_;  // by the first value
};

// For a front with memory, the share of the devices' memory that the next plans may take; 0: there
// are no more to be found. The last plans were allowed the share `most`, take at most `fullest`,
// and have the values `best` at their best. The next must take less than any plan that is no worse.
double next_memory(const GroupSearchOptions& options, const GroupedFront& front, double most,
                   double fullest, const Values& best);

inline Values values_of(const GroupedPlan& plan) { return {plan.value, plan.second_value}; }

}  // namespace trainyard
