// A collective algorithm as rounds of transfers (who sends how much to whom), for the simulator.
// Played alone, the rounds take as long as the algorithm's closed form (a law of tests/simulator
// holds every algorithm to it).
//
// Members are numbered 0 … n−1; with r members in a domain, member i is in domain i / r. Between
// two rounds with different transfers all members wait for each other. Within the repeats of one
// round a member waits only for those it receives from (as in a ring).
#pragma once

#include <vector>

#include "model/cluster/group.h"
#include "model/units.h"

namespace trainyard {

struct Transfer {
  int from = 0, to = 0;  // members
  Bytes bytes;
};

// Whose links a transfer takes.
enum class Way {
  own_links,      // those of the sender and of the receiver
  all_links,      // those of all r members in the sender's block and in the receiver's
  rings,          // those of all members of a domain that follow each other: as many rings at once
  switch_inside,  // to itself: up to the domain's switch and down again
  switch_across,  // to itself: up to the fabric's first switch and down again; to another member:
                  // from the sender's switch to the receiver's
};

struct TransferRound {
  int repeats = 1;
  Seconds latency;  // α of each repeat
  Way way = Way::own_links;
  double overhead = 1;  // bytes on the links for each byte that is moved
  std::vector<Transfer> transfers;
};
using TransferRounds = std::vector<TransferRound>;

// All members send `part` at once, each to the next one of its ring: of the whole group (with the
// mean α of RingPace); of its domain; of the members that have the same place in their domains.
TransferRound ring_round(const GroupLinks& links, int repeats, Bytes part);
TransferRound inside_ring_round(const GroupLinks& links, int repeats, Bytes part);
TransferRound across_ring_round(const GroupLinks& links, int repeats, Bytes part);

// Every member sends to the one `places` further on in its domain, the last ones to the first; to
// the one `domains` domains and `places` places further on.
TransferRound inside_shift(const GroupLinks& links, int places, Bytes bytes);
TransferRound across_shift(const GroupLinks& links, int domains, int places, Bytes bytes);

// All-gather of `message` by recursive doubling, far partners first. In reverse order the rounds
// are the reduce-scatter by recursive halving.
TransferRounds recursive_rounds(const GroupLinks& links, Bytes message);

// Every member sends `bytes` up to a switch and down again.
TransferRound switch_round(const GroupLinks& links, Way way, Bytes bytes);

}  // namespace trainyard
