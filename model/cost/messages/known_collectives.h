// What collectives on the groups of one job's plans cost: of most plans of a search some other plan
// had the same message on the same links. Safe from several threads.
#pragma once

#include "model/cost/collective.h"
#include "model/cost/memo.h"

namespace trainyard {

class KnownCollectives {
 public:
  // What collective_cost answers without this. Requires: of all questions `choice` has the same
  // curves and stretch, and more than one rank takes part.
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
