// The links of a process group: the α and B between its members, derived from the topology graph
// and the rank placement (group_links() of topology.h). Assumes that all sibling groups communicate
// at the same time, so shared NICs and oversubscribed leaves are divided among them. Handbook §6,
// "which links".
#pragma once

#include <vector>

#include "model/units.h"

namespace trainyard {

class LinkLoads;  // model/cluster/link_loads.h

// How long messages from each of a group's domains to the next take on a routed fabric, where some
// domains are nearer to each other than others: relative to a message that has the bandwidth
// GroupLinks::passing, the least of all.
struct HopTimes {
  std::vector<double> around;  // while all pass on, the last domain to the first one
  std::vector<double> along;   // while all but the last domain pass on; of that one, as before it
  double ends = 1;  // between the first and the last domain, while these send to each other alone
  double mirrors = 1;  // the longest while the i-th member from the front and that from the back
                       // send to each other, for all i
};

// The ranks {first + (i mod run)·stride + (i / run)·jump, i < size}. Every group of a plan has this
// form, and most are one run. A group needs a second level if it joins two dimensions with a third
// one between them in the rank order: dense gradients over CP and DP with PP between them.
// Example: stride 2, size 4, run 2, jump 16: ranks 0, 2, 16, 18 and their siblings.
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

// Members of a group in an aligned block of `ranks` ranks. Where groups straddle the ends of
// blocks: the largest number that divides every part (12 ranks over nodes of 8: 8 + 4, so 4).
int members_within(GroupShape group, int ranks);

// How much contention on the links between switches slows messages between domains, by the pattern
// in which an algorithm sends them (most to partners at distance 1, 2, 4, …): their time over their
// time at the bandwidth named beside the field. 1: the NICs are the bottleneck; 2: it takes twice
// as long; below 1: fewer messages share a link than that bandwidth assumes.
struct Crowding {
  double halving = 1;   // recursive halving or doubling of shares, at `across_all_to_all`
  double doubling = 1;  // the whole message in every round, at `across_all_to_all`
  double binomial = 1;  // the whole message down one tree, at `across`
  double scatter = 1;   // halves of what is left of it, at `across`
  double trees = 1;     // up or down two binary trees, at r·across
  double sums = 1;      // added up in the switches (SHARP), at `across`
  double lanes = 1;  // rings over the members of the same place in all domains, at `across`; more
                     // than 1 where members of groups that straddle domains must change rail
  friend bool operator==(const Crowding&, const Crowding&) = default;
};

struct GroupLinks {
  int size = 1;                      // n
  int ranks_per_domain = 1;          // r: members inside one NVLink domain
  int domains = 1;                   // M = n / r
  BytesPerSecond inside;             // per member, to all members of its own domain
  BytesPerSecond inside_pair;        // to one of them: less than `inside` in a mesh
  Seconds inside_latency;            // α of a step inside the domain
  BytesPerSecond across;             // per member, for a ring in rank order, which has r·across
                                     // between two domains
  BytesPerSecond passing;            // of a member that sends to the next one in another domain,
                                     // over its own NICs, when every group does so at once (one
                                     // sender of each group in a domain)
  BytesPerSecond across_all_to_all;  // per member, when each sends as much to every other one
  int narrow_levels = 0;             // levels of the fabric that the group crosses whose subtrees
                                     // have less bandwidth out than their domains have together
                                     // (oversubscribed leaves)
  BytesPerSecond way_out;            // per rank, out of its domain, whatever is beyond
  Seconds across_latency;            // α of a step between domains
  Seconds small_latency;             // … by the fabric's protocol for small messages
  double small_share = 0;            // its share of the bandwidth; 0: there is none
  bool switched = true;              // inside: a switch (NVSwitch) rather than a mesh or PCIe
  bool one_link = false;             // PCIe: a device's one link carries both the traffic inside
                                     // and that out of the domain, which share it
  const LinkLoads* loads = nullptr;  // of links between switches, as long as the cluster's tiers
                                     // live; null: what groups have in common follows from tiers
  const HopTimes* hops = nullptr;    // of a plan's pipeline alone: hop_times() of topology.h
  Crowding crowding;
  friend bool operator==(const GroupLinks&, const GroupLinks&) = default;
};

}  // namespace trainyard
