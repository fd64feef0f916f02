// A bounded list of the best candidates, in a total order: by value, peak memory, step time, then
// the plan itself. Because the order is total, the list is the same in whatever order it is filled.
#pragma once

#include <limits>
#include <vector>

#include "planner/planner.h"

namespace trainyard {

// A total order of plans: by degrees, then micro-batch, ZeRO stage, recomputation, schedule name
// and the rest. It is arbitrary but fixed; simpler plans come first.
bool plan_before(const Plan& a, const Plan& b);
// Whether neither plan is before the other.
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

// The Pareto front of two values: the plans that no other plan dominates. Of plans with equal
// values the first by plan_before stays.
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
