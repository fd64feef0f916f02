// Memo of the costs of collectives on the groups of one job's plans: in a search most plans have
// messages that an earlier plan had on the same links. Safe from several threads.
#pragma once

#include "model/cost/collective.h"
#include "model/cost/memo.h"

namespace trainyard {

class KnownCollectives {
 public:
  // What collective_cost() answers without the memo. Requires: in all calls `choice` has the same
  // curves and stretch, and links.size > 1.
  CollectiveCost cost(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                      const CollectiveChoice& choice) const;

 private:
  struct Key {
    CollectiveOperation operation = CollectiveOperation::all_reduce;
    const CollectiveAlgorithm* named = nullptr;
    Bytes message;
    GroupLinks links;
    friend bool operator==(const Key&, const Key&) = default;
  };
  Memo<Key, CollectiveCost> costs_{4096};
};

}  // namespace trainyard
