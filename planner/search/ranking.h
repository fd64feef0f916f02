// A bounded list of the best candidates, in a total order: first a value, then peak memory, then
// the plan itself. Because the order is total, the list is the same in whatever order it is filled.
#pragma once

#include <limits>
#include <vector>

#include "planner/planner.h"

namespace trainyard {

// By degrees, then micro-batch, ZeRO stage, recomputation and schedule name: an arbitrary but fixed
// order that prefers what is simpler.
bool plan_before(const Plan& a, const Plan& b);
// Neither is before the other.
bool same_choices(const Plan& a, const Plan& b);

struct RankedCandidate {
  double value = 0;
  Candidate candidate;
};

class Ranking {
 public:
  // `one_group_each`: of plans that differ in their sharding group alone only the best is listed.
  explicit Ranking(int capacity, bool one_group_each = false)
      : capacity_(static_cast<std::size_t>(capacity)), one_group_each_(one_group_each) {}

  // No plan of a larger value can enter the list.
  double cutoff() const {
    return entries_.size() < capacity_ || capacity_ == 0 ? std::numeric_limits<double>::infinity()
                                                         : entries_.back().value;
  }
  // Copies only what enters the list.
  void offer(double value, const Plan& plan, const Estimate& estimate);
  const std::vector<RankedCandidate>& entries() const { return entries_; }

 private:
  std::size_t capacity_;
  bool one_group_each_;
  std::vector<RankedCandidate> entries_;  // best first
};

// The plans that no other plan beats in one of two values without losing in the other. Of plans
// with equal values the first in the order of plans stays.
class ParetoFront {
 public:
  // Whether a plan with these values could be on the front.
  bool has_room_for(const Values& values) const;
  void offer(const Values& values, const Plan& plan, const Estimate& estimate);
  std::vector<Candidate> candidates() const;  // by the first value

 private:
  struct Entry {
    Values values;
    Candidate candidate;
  };
  std::vector<Entry> entries_;  // by the first value
};

}  // namespace trainyard
