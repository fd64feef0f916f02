// The points of a sweep that are still to be answered, handed out as leases. A lease that comes
// back unanswered is handed out again, first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/sweep/store.h"

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
  void give_back(Lease lease) { gaps_.push_back(lease); }
  bool empty() const { return gaps_.empty(); }

 private:
  std::vector<Lease> gaps_;  // the next one last
  std::int64_t size_;
};

}  // namespace trainyard
