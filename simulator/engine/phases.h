// A call at the collective grain: a row of phases, one for each round of its algorithm with all
// repeats. A phase waits its latencies, then moves the bytes of all its transfers as one flow over
// all their links.
#pragma once

#include <vector>

#include "simulator/graph/task_graph.h"
#include "simulator/network/fabric.h"
#include "simulator/network/flow_network.h"

namespace trainyard {

struct CallPhase {
  Seconds latency;
  Bytes bytes;                 // that the busiest member sends; 0: nothing moves
  std::vector<LinkUse> links;  // a link may occur more than once
};

// The call's algorithm, or the other one where that does not apply; null: neither does.
const CollectiveAlgorithm* algorithm_on(const GroupLinks& links, const Call& call);

// Its transfers on a group with these links, stretch not counted. The rounds of an all-to-all do
// not wait for each other: those inside the domains are one round, and those across. Requires: as
// PhasedCall, more than one member.
TransferRounds rounds_of(const GroupLinks& links, const Call& call);

// An exchange of two levels (Call::leaving) that has the links for itself, before its stretch.
Seconds two_level_time(const GroupLinks& links, Bytes message, double leaving);

// The rounds of a call on groups with these links, cut into phases: the same for all such groups,
// except for the links. None for a group of one. The call's stretch is in latencies and bytes.
class PhasedCall {
 public:
  // Requires: an algorithm of the call applies.
  PhasedCall(const GroupLinks& links, const Call& call);

  const GroupLinks& links() const { return links_; }
  std::size_t size() const { return parts_.size(); }
  Seconds latency(std::size_t phase) const { return parts_[phase].latency * stretch_; }
  Bytes bytes(std::size_t phase) const { return parts_[phase].bytes * stretch_; }
  // Whether both phases send the same share of their bytes between the same members, and so load
  // the same links alike. Never wrongly yes; may be no where they do load them alike.
  bool moves_alike(std::size_t phase, const PhasedCall& other, std::size_t other_phase) const;
  // Of a phase of one group; a link may occur more than once. Requires: a group with these links.
  void append_links(std::size_t phase, Fabric& fabric, GroupView group,
                    std::vector<LinkUse>& uses) const;

 private:
  struct Part {
    Seconds latency;
    Bytes bytes;  // before the stretch
  };
  Part part_of(const TransferRound& round) const;

  GroupLinks links_;
  double stretch_ = 1;
  TransferRounds rounds_;
  std::vector<Part> parts_;  // of each round
};

// All phases of one group's call. Requires: as PhasedCall.
std::vector<CallPhase> phases_of(Fabric& fabric, GroupView group, const Call& call);

}  // namespace trainyard
