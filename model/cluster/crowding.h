// How long messages between domains take in algorithms whose partners stand at distance 1, 2, 4, …
// (recursive halving, trees), with all sibling groups communicating at once. A round lasts as long
// as the fullest link needs for its messages.
//
// In nested subtrees (domains, leaves) that follows from how many of a group's domains share one:
// if q consecutive domains out of M each send to the domain d further on (the last ones to the
// first), min(q, d, M − d) of the messages leave the q domains. Example: leaves of q = 4 domains,
// M = 16: at distance 1 one message leaves a leaf, at distance 4 and 8 all four.
//
// Exact where group and subtrees divide each other and, for trees in a rail-optimised fabric, where
// a rail has one NIC of each domain. Elsewhere never too fast: groups that straddle the end of a
// subtree count as if each had as many domains in it as any has. Messages that only first members
// send have one member's NICs. Fabrics without nested subtrees are counted link by link
// (model/cluster/routed_groups.h).
#pragma once

#include "model/cluster/group.h"
#include "model/cluster/topology.h"

namespace trainyard {

// Seconds for each byte that a closed form counts between domains: the inverse of the bandwidth
// that the algorithm has there, in the mean of its rounds. Fields as in Crowding.
struct CrossingTimes {
  double halving = 0, doubling = 0, binomial = 0, scatter = 0, trees = 0, sums = 0;
  double lanes = 0;  // 0: 1 / `across`
};

// Whether all aligned blocks of `ranks` ranks in which a one-run group has members hold equally
// many of them, and so for all its siblings.
bool divide_each_other(GroupShape group, int ranks);

// How the sibling groups of a shape cross the ends of subtrees (aligned blocks of ranks). Each
// field is that of the subtree where it is largest.
struct Straddling {
  double share = 1;     // ranks of a subtree for each group that has members inside and outside
  double outside = 0;   // members outside that a rank inside has in its group, mean over the ranks
  int members = 1;      // members inside of a group that also has some outside
  bool aligned = true;  // every group has equally many members in each subtree that it meets
};
// Groups of one run: exact, over the first subtrees until they repeat. Groups of two levels, and
// where that would be very many subtrees: as if all groups had members_within() in each, which
// never crosses less than they do. O(1) where groups and subtrees divide each other.
// Requires: members_within(group, ranks) < group.size.
Straddling straddling(GroupShape group, int ranks, int devices);

// How a group crosses a tier. NVLink domains: by blocks of members_within(), so that all groups are
// alike. Tiers above: by straddling(). But on rails, if groups straddle domains too, messages may
// cross on only a few of the rails, and those tiers are treated as domains are.
Straddling straddling_of(const FabricTiers& fabric, const Tier& tier, GroupShape group);

// Crossing times from the tiers alone; `above_domains` leaves the domains' own tier out.
// O(tiers · log M); if M is no power of two, O(tiers · M / q · log M).
// Requires: `links` of this group, `crowding` not yet set; several domains.
enum class CrossedFrom { domains, above_domains };
CrossingTimes crossing_times(const FabricTiers& fabric, GroupShape group, const GroupLinks& links,
                             CrossedFrom from = CrossedFrom::domains);

// The longer time of each field.
CrossingTimes longer(const CrossingTimes& a, const CrossingTimes& b);

// Times for each byte, from `sums` over all rounds of an algorithm with a message of one byte
// (`trees`: one way). `members`: of each of the group's `domains`.
CrossingTimes in_the_mean(const CrossingTimes& sums, int domains, int members);

// `times` relative to the bandwidths of `links`.
Crowding crowding(const CrossingTimes& times, const GroupLinks& links);

}  // namespace trainyard
