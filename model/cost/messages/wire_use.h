// How a collective uses the links between domains while it runs: what others on the same links find
// free, and how fast each of both goes on where they meet.
#pragma once

#include "model/cluster/group.h"
#include "model/cost/collective.h"
#include "model/units.h"

namespace trainyard {

struct WireUse {
  double free = 0;  // share of its time in which it leaves these links to others: latency, and
                    // the work inside domains where one level follows the other
  // Bytes over a member's own link out for each byte that it sends in the rest of the time: 1/r
  // where a ring spreads them over the r members of a domain.
  double crossing = 0;
  // At which a member sends in that time, alone; in a group inside one domain over the links there.
  BytesPerSecond rate;
};

// The ways that bytes take: a ring spreads what leaves a domain over the links of all its members
// there; a message to the next member goes over the sender's; in an all-to-all every member sends
// to all others.
WireUse ring_use(const GroupLinks& links);
WireUse passing_use(const GroupLinks& links);
WireUse all_to_all_use(const GroupLinks& links);

// Of a collective of that cost, by the algorithm that carries it.
WireUse wire_use(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                 const CollectiveCost& cost);

}  // namespace trainyard
