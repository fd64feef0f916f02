// How a collective uses the links between domains while it runs: for which share of its time they
// are idle, and at which rate they carry its bytes in the rest. With that overlap.h works out how
// two collectives slow each other on the same links.
#pragma once

#include "model/cluster/group.h"
#include "model/cluster/link_loads.h"
#include "model/cost/collective.h"
#include "model/units.h"

namespace trainyard {

struct WireUse {
  // Share of its time in which it leaves these links to others: its latency; and, where rounds
  // inside domains and rounds between them take turns, the rounds inside.
  double free = 0;
  // In the rest of the time, bytes over a member's own link out of its domain for each byte that
  // the member sends. 1/r for a ring, whose bytes out of a domain are spread over its r members.
  double crossing = 0;
  // Bytes a second that a member sends in the rest of the time, with the links to itself; of a
  // group inside one domain over the links there.
  BytesPerSecond rate;
  // Share that this is of the rate which the links between domains allow: below 1 where links
  // inside its domains hold it up.
  double filling = 0;
  TrafficPattern pattern = TrafficPattern::ring;
};

// Use while bytes move (`free` 0). In a ring, what leaves a domain is spread over the links of all
// members there; a message to the next member goes over the sender's link alone; in an all-to-all
// every member sends to all others.
WireUse ring_use(const GroupLinks& links);
WireUse passing_use(const GroupLinks& links);
WireUse all_to_all_use(const GroupLinks& links);
// Use by messages of a ring's rate which leave links free for that share of their time and in the
// rest have so many bytes cross; 0: as many as a ring.
WireUse mean_use(const GroupLinks& links, double free, double crossing, TrafficPattern pattern);

// Use by a whole collective. `cost`: of the same collective; it names the algorithm.
WireUse wire_use(CollectiveOperation operation, const GroupLinks& links, Bytes message,
                 const CollectiveCost& cost);

}  // namespace trainyard
