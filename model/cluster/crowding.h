// What algorithms whose partners stand at distance 1, 2, 4, … have of the links between domains,
// all sibling groups talking at once: a round lasts as long as the fullest link carries its
// messages.
//
// In nested subtrees it follows from how many of a group's domains share one. Of q consecutive
// domains out of M, each of which sends to the one d further on (the last ones to the first),
// min(q, d, M − d) leave them. Exact where group and subtrees divide each other and, for trees in a
// rail-optimised fabric, where a rail has one NIC of each domain; elsewhere never too fast: groups
// that straddle the end of a subtree count as if each had as many domains in it as any has. What
// only first members send has one member's NICs. Other fabrics count it link by link
// (model/cluster/routed_groups.h).
#pragma once

#include "model/cluster/group.h"
#include "model/cluster/topology.h"

namespace trainyard {

// Seconds a byte, of those that the closed forms count between domains: one over what an algorithm
// has there in the mean of its rounds. Fields as of Crowding.
struct CrossingTimes {
  double halving = 0, doubling = 0, binomial = 0, scatter = 0, trees = 0, sums = 0;
  double lanes = 0;  // 0: as at `across`
};

// Whether every aligned block of so many ranks that a group of one run meets has as many of its
// members, all siblings alike.
bool divide_each_other(GroupShape group, int ranks);

// How the sibling groups of a shape meet the ends of subtrees: aligned blocks of so many ranks. Of
// the subtree that has most of each.
struct Straddling {
  double share = 1;     // ranks of a subtree for each group with members in it and outside
  double outside = 0;   // members that one inside has outside, in the mean over the ranks
  int members = 1;      // inside, of a group that has some outside
  bool aligned = true;  // every group has as many in each subtree that it meets
};
// Of groups of one run exactly, over the first subtrees until they repeat; of groups in two levels,
// and where that would be very many subtrees, as if all groups had members_within() in each, which
// is never less crossing than there is. O(1) where groups and subtrees divide each other.
// Requires: members_within(group, ranks) < group.size.
Straddling straddling(GroupShape group, int ranks, int devices);

// How a group meets a tier: a domain by whole blocks of members (members_within), so that all its
// groups are alike; what is above domains as straddling() says. On rails, where groups straddle
// domains too, whoever crosses may do so on few of them: as a domain.
Straddling straddling_of(const FabricTiers& fabric, const Tier& tier, GroupShape group);

// On the tiers alone. O(tiers · log M), for M that are no power of two O(tiers · M / q · log M).
// Without the domains' own tier it is what the subtrees above them add.
// Requires: `links` of this group but for its crowding; several domains.
enum class CrossedFrom { domains, above_domains };
CrossingTimes crossing_times(const FabricTiers& fabric, GroupShape group, const GroupLinks& links,
                             CrossedFrom from = CrossedFrom::domains);

// Of each the longer one.
CrossingTimes longer(const CrossingTimes& a, const CrossingTimes& b);

// From sums over the rounds of a message of one byte (`trees`: one way) among so many members.
CrossingTimes in_the_mean(const CrossingTimes& sums, int domains, int members);

// Over the links' bandwidths.
Crowding crowding(const CrossingTimes& times, const GroupLinks& links);

}  // namespace trainyard
