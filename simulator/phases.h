// A call at the collective grain: a row of phases, one for each round of its algorithm with all
// repeats (an all-to-all: for all its rounds of one kind). A phase waits its latencies, then moves
// the bytes of all its transfers as one flow over all their links.
#pragma once

#include <vector>

#include "simulator/fabric.h"
#include "simulator/flow_network.h"
#include "simulator/task_graph.h"

namespace trainyard {

struct CallPhase {
  Seconds latency;
  Bytes bytes;                 // that the busiest member sends; 0: nothing moves
  std::vector<LinkUse> links;  // a link may occur more than once
};

// The call's algorithm, or the other one where that does not apply; null: neither does.
const CollectiveAlgorithm* algorithm_on(const GroupLinks& links, const Call& call);

// Its transfers on a group with these links, stretch not counted. Requires: as `phases_of`, more
// than one member.
TransferRounds rounds_of(const GroupLinks& links, const Call& call);

// An exchange of two levels (Call::leaving) that has the links for itself, before its stretch.
Seconds two_level_time(const GroupLinks& links, Bytes message, double leaving);

// Empty for a group of one. The call's stretch is in latencies and bytes.
// Requires: an algorithm of the call applies to the group.
std::vector<CallPhase> phases_of(Fabric& fabric, const TaskGroup& group, const Call& call);

}  // namespace trainyard
