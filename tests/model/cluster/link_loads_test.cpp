// What groups of two shapes load together, counted by hand on tori of one and two dimensions.
// Messages go to the next node by one link; each switch has eight ranks.
#include "model/cluster/link_loads.h"

#include <gtest/gtest.h>

#include "tests/model/cluster/clusters.h"

namespace trainyard {
namespace {

struct Messages {
  GroupShape shape;
  TrafficPattern pattern = TrafficPattern::ring;
};

LinkLoads::Met fullest(const Cluster& cluster, const Messages& one, const Messages& other) {
  const FabricTiers tiers = tiers_of(cluster);
  const GroupLinks own = group_links(tiers, one.shape);
  const GroupLinks others = group_links(tiers, other.shape);
  const auto met = own.loads->met(one.pattern, *others.loads, other.pattern);
  EXPECT_TRUE(met);
  return met ? met->fullest : LinkLoads::Met{-1, -1};
}

void expect_met(const LinkLoads::Met& met, double own, double other) {
  EXPECT_NEAR(met.own, own, 0.5 / LinkLoads::kFull);
  EXPECT_NEAR(met.other, other, 0.5 / LinkLoads::kFull);
}

constexpr BytesPerSecond kOneLink(40e9);  // a node's NICs have 400 GB/s

TEST(LinkLoads, OfRingsOnTheSameLinksAreFull) {
  const Cluster line = torus_cluster({8}, kOneLink);
  expect_met(fullest(line, {{1, 64}}, {{8, 8}}), 1, 1);
}

TEST(LinkLoads, OfRowsAndColumnsMeetNowhere) {
  const Cluster plane = torus_cluster({4, 4}, kOneLink);
  expect_met(fullest(plane, {{1, 32}}, {{32, 4}}), 0, 0);
  expect_met(fullest(plane, {{1, 32}}, {{1, 32}}), 1, 1);
}

// Nodes 0 and 1 send to each other, as do 2 and 3. Nodes 0 and 2, and 1 and 3, send to each other
// through the node between: both over the link between 1 and 2, which has no message of the
// neighbours, and one of them over each of those beside it.
TEST(LinkLoads, AreThoseOfTheFullestCommonLink) {
  const Cluster line = torus_cluster({8}, kOneLink);
  expect_met(fullest(line, {{1, 16}}, {{1, 64}}), 1, 1);
  expect_met(fullest(line, {{1, 16}}, {{16, 2}}), 1, 0.5);
}

// One of eight NICs of 50 GB/s sends to the next node over a link of 200 GB/s. A ring of single
// ranks, eight beside each other, fills that link.
TEST(LinkLoads, AreBelowOneWhereNicsLimit) {
  const Cluster line = torus_cluster({8}, BytesPerSecond(200e9));
  expect_met(fullest(line, {{8, 8}}, {{1, 64}, TrafficPattern::passing}), 1, 0.25);
  const Cluster wide = torus_cluster({8}, BytesPerSecond(1e12));
  expect_met(fullest(wide, {{8, 8}}, {{1, 64}}), 0.4, 0.4);
}

// Two rows of four nodes. Partners at distance 1, 2 and 4 get 1/8, 2/8 and 4/8 of a rank's bytes,
// and the fullest link is as full in each round: 7/8 in all. Links forward along a row carry one
// message each in the first two rounds (half-way round, even places send forward, odd ones back),
// and none in the last, in which all go to the other row.
TEST(LinkLoads, OfPartnersFarAndNearAreMeansOverTheRounds) {
  const Cluster plane = with_routing(torus_cluster({4, 2}, kOneLink), FabricRouting::static_paths);
  const Messages far_and_near{{8, 8}, TrafficPattern::halving};
  expect_met(fullest(plane, far_and_near, {{1, 32}}), (1.0 / 8 + 2.0 / 8) / (7.0 / 8), 1);
  expect_met(fullest(plane, far_and_near, {{32, 2}}), 1, 1);
}

TEST(LinkLoads, OfATreesSubtreesAreNotCounted) {
  const GroupLinks links = group_links(tiers_of(fat_tree_cluster(8, 2, 2)), {8, 8});
  EXPECT_EQ(links.loads, nullptr);
}

}  // namespace
}  // namespace trainyard
