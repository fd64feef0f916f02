// Who sends how much to whom, round after round: the other half of a collective algorithm, for the
// simulator. Played alone, rounds take as long as the algorithm's closed form (a law of
// tests/simulator holds every algorithm to it).
//
// Members are numbered 0 … n−1; with r members in a domain, member i is in domain i / r. Between
// two rounds with different transfers all members wait for each other; repeats of one round follow
// each other member by member (a ring).
#pragma once

#include <vector>

#include "model/cluster/group.h"
#include "model/units.h"

namespace trainyard {

struct Transfer {
  int from = 0, to = 0;  // members
  Bytes bytes;
};

enum class Way {
  own_links,      // of the sender and of the receiver
  all_links,      // of the members of both blocks
  rings,          // of all members in a row in a domain: as many rings side by side
  switch_inside,  // up to the domain's switch and down again, to itself
  switch_across,  // the same over the fabric's first switch; to another, from its switch on
};

struct TransferRound {
  int repeats = 1;
  Seconds latency;  // α of each repeat
  Way way = Way::own_links;
  double overhead = 1;  // bytes on the links for each byte that is moved
  std::vector<Transfer> transfers;
};
using TransferRounds = std::vector<TransferRound>;

// Member i sends `part` to member i + 1, all of them at once, around the whole group (α in the mean
// of a pass: RingPace); inside each domain; among the members of like place in all domains.
TransferRound ring_round(const GroupLinks& links, int repeats, Bytes part);
TransferRound inside_ring_round(const GroupLinks& links, int repeats, Bytes part);
TransferRound across_ring_round(const GroupLinks& links, int repeats, Bytes part);

// Everyone to the member `places` further on in its domain; to the one `domains` domains and
// `places` places further on.
TransferRound inside_shift(const GroupLinks& links, int places, Bytes bytes);
TransferRound across_shift(const GroupLinks& links, int domains, int places, Bytes bytes);

// All-gather of S by recursive doubling, far partners first; backwards it is the reduce-scatter.
TransferRounds recursive_rounds(const GroupLinks& links, Bytes message);

// Every member to a switch and back.
TransferRound switch_round(const GroupLinks& links, Way way, Bytes bytes);

}  // namespace trainyard
