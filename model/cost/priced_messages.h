// Messages of one plan's parameters, each priced once: most stages have layers of the same size,
// and both ends a matrix of the same size. What it answers is what the functions of
// model/cost/collective.h do; nothing is allocated.
#pragma once

#include <cstddef>

#include "model/cost/collective.h"
#include "model/cost/traffic.h"
#include "model/inline_vector.h"
#include "model/units.h"

namespace trainyard {

class PricedMessages {
 public:
  // `links`: of the plan, which outlive this. The groups asked for are theirs.
  explicit PricedMessages(const PlanLinks& links) : links_(links) {}

  CollectiveCost cost(CollectiveOperation operation, const GroupLinks& group, Bytes message) {
    if (const Price* known = find(operation, group, message, true)) return known->cost;
    const CollectiveCost cost = collective_cost(operation, group, message, links_.choice);
    keep({operation, &group, message, cost, true});
    return cost;
  }
  // The same, without what it is made of.
  Seconds time(CollectiveOperation operation, const GroupLinks& group, Bytes message) {
    if (const Price* known = find(operation, group, message, false)) return known->cost.time;
    const Seconds time = collective_time(operation, group, message, links_);
    keep({operation, &group, message, {.time = time, .latency = {}}, false});
    return time;
  }

 private:
  static constexpr std::size_t kMost = 12;  // messages behind these are priced every time
  struct Price {
    CollectiveOperation operation = CollectiveOperation::all_reduce;
    const GroupLinks* group = nullptr;
    Bytes message;
    CollectiveCost cost;
    bool whole = false;  // else nothing but the time is known
  };

  const Price* find(CollectiveOperation operation, const GroupLinks& group, Bytes message,
                    bool whole) const {
    for (const Price& price : prices_) {
      const bool same = price.message == message && price.group == &group;
      if (same && price.operation == operation && (price.whole || !whole)) return &price;
    }
    return nullptr;
  }
  void keep(const Price& price) {
    if (prices_.size() < kMost) prices_.push_back(price);
  }

  const PlanLinks& links_;
  InlineVector<Price, kMost> prices_;
};

}  // namespace trainyard
