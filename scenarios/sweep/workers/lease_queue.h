// The points of a sweep that are still to be answered, handed out as leases. A lease on which a
// worker died is handed out once more, point by point, after all others: if one of its points is
// what kills workers, it kills only one more, and all other points are answered by then.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "scenarios/sweep/results/store.h"

namespace trainyard {

inline std::int64_t points_of(const std::vector<Lease>& leases) {
  std::int64_t points = 0;
  for (const Lease& lease : leases) points += lease.count;
  return points;
}

class LeaseQueue {
 public:
  // `gaps`: the missing points, in order. A lease has at most `size` points.
  LeaseQueue(std::vector<Lease> gaps, std::int64_t size)
      : gaps_(gaps.rbegin(), gaps.rend()), size_(size) {}

  std::optional<Lease> next() {
    if (gaps_.empty()) return std::nullopt;
    Lease& gap = gaps_.back();
    const Lease lease{gap.first, std::min(gap.count, size_)};
    gap.first += lease.count;
    gap.count -= lease.count;
    if (gap.count == 0) gaps_.pop_back();
    return lease;
  }
  // Takes back a lease that no worker received; it is handed out next.
  void give_back(Lease lease) { gaps_.push_back(lease); }
  // A worker died on the lease. False: it was the second one on this point, which is not handed out
  // again.
  bool lose(Lease lease) {
    if (lease.count == 1 && lost_.contains(lease.first)) return false;
    std::vector<Lease> points;  // in reverse order
    for (std::int64_t i = lease.count; i-- > 0;) {
      points.push_back({lease.first + i, 1});
      lost_.insert(lease.first + i);
    }
    gaps_.insert(gaps_.begin(), points.begin(), points.end());
    return true;
  }
  bool empty() const { return gaps_.empty(); }

 private:
  std::vector<Lease> gaps_;  // in reverse order: the next one is the last
  std::int64_t size_;
  std::set<std::int64_t> lost_;  // points of leases that a worker died on
};

}  // namespace trainyard
