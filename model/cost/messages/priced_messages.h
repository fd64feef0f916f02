// Costs of the messages of one plan's parameters, each computed once: most stages have layers of
// the same size, and both ends a matrix of the same size. Answers are those of collective_cost();
// nothing is allocated.
#pragma once

#include <cstddef>

#include "model/cost/collective.h"
#include "model/cost/messages/traffic.h"
#include "model/inline_vector.h"
#include "model/units.h"

namespace trainyard {

class PricedMessages {
 public:
  // `links`: of the plan; they outlive this. Requires of cost(): `group` is a member of `links`,
  // for groups are told apart by address.
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
  static constexpr std::size_t kMost = 12;  // further messages are priced every time
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
