// What algorithms whose partners stand at distance 1, 2, 4, … have of the links between domains,
// all sibling groups talking at once: a round lasts as long as the fullest link carries its
// messages.
//
// In nested subtrees it follows from how many of a group's domains share one. Of q consecutive
// domains out of M, each of which sends to the one d further on (the last ones to the first),
// min(q, d, M − d) leave them. Exact where group and subtrees divide each other and, for trees in a
// rail-optimised fabric, where a rail has one NIC of each domain; elsewhere never too fast. What
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
};

// On the tiers alone. O(tiers · log M), for M that are no power of two O(tiers · M / q · log M).
// Requires: `links` of this group but for its crowding; several domains.
CrossingTimes crossing_times(const FabricTiers& fabric, GroupShape group, const GroupLinks& links);

// From sums over the rounds of a message of one byte (`trees`: one way) among so many members.
CrossingTimes in_the_mean(const CrossingTimes& sums, int domains, int members);

// Over the links' bandwidths.
Crowding crowding(const CrossingTimes& times, const GroupLinks& links);

}  // namespace trainyard
