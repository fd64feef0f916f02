// What a process group's members have between them: the α and B of its links, derived from the
// topology graph and the rank placement, with all sibling groups talking at the same time (so
// shared NICs and oversubscribed leaves are divided). Handbook §6, "which links".
#pragma once

#include "model/units.h"

namespace trainyard {

// The ranks {first + (i mod run)·stride + (i / run)·jump, i < size}. Every group of a plan has this
// form; most are one run: the second level is for a dimension between the two that a group joins
// (dense gradients over CP and DP when PP stands between them).
struct GroupShape {
  int stride = 1;
  int size = 1;
  int run = 0;   // members before the first jump; 0: all of them
  int jump = 0;  // from the start of one run to that of the next
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

// Ranks in a row: those of a stage, where the pipeline is the outermost dimension.
struct RankRange {
  int first = 0;
  int count = 0;  // 0: all ranks of the cluster
  friend bool operator==(const RankRange&, const RankRange&) = default;
};

inline bool is_one_run(GroupShape group) { return group.run == 0 || group.run == group.size; }

// Members of a group in every aligned block of so many ranks.
int members_within(GroupShape group, int ranks);

// How much contention on the links between switches slows each algorithm's messages between
// domains, whose partners stand at distance 1, 2, 4, …: their time over that at the bandwidth named
// beside the field. 1: the NICs are the bottleneck; below 1: fewer messages share a link than that
// bandwidth assumes.
struct Crowding {
  double halving = 1;   // recursive halving or doubling of shares, at `across_all_to_all`
  double doubling = 1;  // the whole message in every round, at `across_all_to_all`
  double binomial = 1;  // the whole message down one tree, at `across`
  double scatter = 1;   // halves of what is left of it, at `across`
  double trees = 1;     // up or down two binary trees, at r·across
  double sums = 1;      // added up in the switches, at `across`
  double lanes = 1;     // around a ring of like places of all domains, at `across`: more than 1
                        // where groups that straddle domains change rail for it
  friend bool operator==(const Crowding&, const Crowding&) = default;
};

struct GroupLinks {
  int size = 1;                      // n
  int ranks_per_domain = 1;          // r: members inside one NVLink domain
  int domains = 1;                   // M = n / r
  BytesPerSecond inside;             // per member, to all members of its own domain
  BytesPerSecond inside_pair;        // to one of them: less than `inside` in a mesh
  Seconds inside_latency;            // α of a step inside the domain
  BytesPerSecond across;             // per member: its share of what a ring in rank order has
                                     // between two domains; the ring itself has r·across
  BytesPerSecond passing;            // of a message to the next member in another domain, when all
                                     // pass one on: a domain has one sender of each group, over
                                     // its own NICs
  BytesPerSecond across_all_to_all;  // per member, when each sends as much to every other one
  int narrow_levels = 0;             // of the hierarchy that messages leave, with less to leave a
                                     // subtree than its domains have: oversubscribed leaves
  BytesPerSecond way_out;            // per rank, out of its domain, whatever is beyond
  Seconds across_latency;            // α of a step between domains
  Seconds small_latency;             // … by the protocol for small messages, where there is one:
  double small_share = 0;            // its share of the bandwidth; 0: there is none
  bool switched = true;              // inside: a switch (NVSwitch) rather than a mesh or PCIe
  bool one_link = false;             // out of the domain over the very link that `inside` is of
                                     // (PCIe): what does both at a time shares it
  Crowding crowding;
  friend bool operator==(const GroupLinks&, const GroupLinks&) = default;
};

}  // namespace trainyard
