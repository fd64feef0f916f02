// A call at the collective grain: a sequence of phases, one for each round of its algorithm, with
// all repeats of the round together. A phase waits for the latencies of its repeats, then moves the
// bytes of all its transfers as one flow that occupies all their links. A ring all-reduce of S
// bytes on 4 ranks has one round of 6 repeats with S/4 each, so it is one phase: 6 latencies, then
// 1.5 S bytes.
#pragma once

#include <vector>

#include "simulator/graph/task_graph.h"
#include "simulator/network/fabrics.h"
#include "simulator/network/flow_network.h"

namespace trainyard {

struct CallPhase {
  Seconds latency;
  Bytes bytes;                 // those that the busiest member sends; 0: latency only
  std::vector<LinkUse> links;  // a link may occur more than once
};

// The call's algorithm if it applies to these links, else Call::otherwise if that does, else null.
const CollectiveAlgorithm* algorithm_on(const GroupLinks& links, const Call& call);

// The transfer rounds of a call on a group with these links, without its stretch. The rounds of an
// all-to-all do not wait for each other, so consecutive ones inside domains are merged into one,
// and so are those across. Requires: as PhasedCall, and more than one member.
TransferRounds rounds_of(const GroupLinks& links, const Call& call);

// The time of a two-level exchange (Call::leaving) with the links to itself, before its stretch:
// max((r−1)·α_in, (m−1)·α_across) + max((r−1)/r·S/B_in, (m−1)/m·leaving·S/B_across), for m domains
// of r members.
Seconds two_level_time(const GroupLinks& links, Bytes message, double leaving);

// A call cut into phases. All groups with the same links share them; only the links in the fabric
// differ by group. A group of one has no phases. Latencies and bytes contain the call's stretch.
class PhasedCall {
 public:
  // Requires: an algorithm of the call applies.
  PhasedCall(const GroupLinks& links, const Call& call);

  const GroupLinks& links() const { return links_; }
  std::size_t size() const { return parts_.size(); }
  Seconds latency(std::size_t phase) const { return parts_[phase].latency * stretch_; }
  Bytes bytes(std::size_t phase) const { return parts_[phase].bytes * stretch_; }
  // Whether both phases send the same shares of their bytes between the same members, and so load
  // the same links in the same proportions. Conservative: may be false where they do, never true
  // where not.
  bool moves_alike(std::size_t phase, const PhasedCall& other, std::size_t other_phase) const;
  // Appends the links that a phase uses on one group; a link may occur more than once. Requires:
  // the group has these links.
  void append_links(std::size_t phase, Fabrics& fabric, GroupView group,
                    std::vector<LinkUse>& uses) const;

 private:
  struct Part {
    Seconds latency;
    Bytes bytes;  // without the stretch
  };
  Part part_of(const TransferRound& round) const;

  GroupLinks links_;
  double stretch_ = 1;
  TransferRounds rounds_;
  std::vector<Part> parts_;  // of each round
};

// All phases of one group's call. Requires: as PhasedCall.
std::vector<CallPhase> phases_of(Fabrics& fabric, GroupView group, const Call& call);

}  // namespace trainyard
