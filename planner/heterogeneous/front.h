// The front of two objectives over plans for groups of unlike nodes: those that no other beats in
// both. Plans of equal values are one, the first that was offered.
#pragma once

#include <optional>
#include <vector>

#include "planner/heterogeneous/groups.h"
#include "planner/objective.h"

namespace trainyard {

class GroupedFront {
 public:
  // Whether it is on the front, so far.
  bool offer(GroupedPlan plan);
  // The least second value of those that are no worse than `first`; infinite where there is none.
  double least_second(double first) const;
  double least_first(double second) const;

  // A plan whose neighbours were not asked for yet: of those that were offered last, for they are
  // of the team that is searched. Empty: none.
  std::optional<GroupedPlan> take_open();
  // Those that were offered since the last call, as `change` makes them; none of them is open.
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

// On what share of all memory plans are to be found next for a front with memory, after those on
// `most` of it take `fullest` and are worth `best` in each objective: on less than any plan that is
// no worse takes. 0: there is no more to be found.
double next_memory(const GroupSearchOptions& options, const GroupedFront& front, double most,
                   double fullest, const Values& best);

inline Values values_of(const GroupedPlan& plan) { return {plan.value, plan.second_value}; }

}  // namespace trainyard
