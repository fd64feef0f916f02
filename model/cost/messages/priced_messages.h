// Messages of one plan's parameters, each priced once: most stages have layers of the same size,
// and both ends a matrix of the same size. What it answers is `collective_cost`; nothing is
// allocated.
#pragma once

#include <cstddef>

#include "model/cost/collective.h"
#include "model/cost/messages/traffic.h"
#include "model/inline_vector.h"
#include "model/units.h"

namespace trainyard {

class PricedMessages {
 public:
  // `links`: of the plan, which outlive this. The groups asked for are theirs.
  explicit PricedMessages(const PlanLinks& links) : links_(links) {}

  CollectiveCost cost(CollectiveOperation operation, const GroupLinks& group, Bytes message) {
    for (const Price& price : prices_) {
      const bool same = price.message == message && price.group == &group;
      if (same && price.operation == operation) return price.cost;
    }
    const CollectiveCost cost = collective_cost(operation, group, message, links_.choice);
    if (prices_.size() < kMost) prices_.push_back({operation, &group, message, cost});
    return cost;
  }

 private:
  static constexpr std::size_t kMost = 12;  // messages behind these are priced every time
  struct Price {
    CollectiveOperation operation = CollectiveOperation::all_reduce;
    const GroupLinks* group = nullptr;
    Bytes message;
    CollectiveCost cost;
  };

  const PlanLinks& links_;
  InlineVector<Price, kMost> prices_;
};

}  // namespace trainyard
