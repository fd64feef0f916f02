#include "model/cost/sharding/unlike_units.h"

#include <algorithm>

namespace trainyard {

void PassOfUnlikeUnits::add(const UnlikeUnit& unit) {
  // The gathers are issued when the unit before begins, that of the experts behind the other.
  link_ = std::max(link_, begun_) + unit.gather;
  const Seconds dense = link_;
  link_ += unit.gather_of_experts;
  const Seconds experts = link_;
  // Behind them comes the reduction of the unit before, from that unit's end on.
  if (left_to_reduce_ > Seconds(0)) link_ = std::max(link_, clock_) + left_to_reduce_;
  begun_ = clock_;
  clock_ = std::max(clock_, dense) + unit.before_experts;
  clock_ = std::max(clock_, experts) + (unit.work - unit.before_experts);
  work_ += unit.work;
  left_to_reduce_ = unit.reduce;
  if (is_first_) before_ = clock_ - unit.work;
  is_first_ = false;
}

ShownInPass PassOfUnlikeUnits::shown() const {
  const Seconds end = std::max(link_, clock_) + left_to_reduce_;
  return {end - work_, before_ + (end - clock_)};
}

}  // namespace trainyard
