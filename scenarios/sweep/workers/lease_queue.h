// The points of a sweep that are still to be answered, handed out as leases. What a worker died on
// is handed out once more, point by point and behind all else: should a point be what it died of,
// it takes one more worker with it, and everything else is answered by then.
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
  // `gaps`: in order. Leases have `size` points at most.
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
  // Nobody had it: it is handed out next.
  void give_back(Lease lease) { gaps_.push_back(lease); }
  // A worker died on it. False: the second one on this point, which is not handed out again.
  bool lose(Lease lease) {
    if (lease.count == 1 && lost_.contains(lease.first)) return false;
    std::vector<Lease> points;  // the last one first
    for (std::int64_t i = lease.count; i-- > 0;) {
      points.push_back({lease.first + i, 1});
      lost_.insert(lease.first + i);
    }
    gaps_.insert(gaps_.begin(), points.begin(), points.end());
    return true;
  }
  bool empty() const { return gaps_.empty(); }

 private:
  std::vector<Lease> gaps_;  // the next one last
  std::int64_t size_;
  std::set<std::int64_t> lost_;  // points of leases that a worker died on
};

}  // namespace trainyard
