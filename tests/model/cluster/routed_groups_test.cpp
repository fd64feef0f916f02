// Groups on fabrics without nested subtrees, with rates counted by hand. A link's bandwidth is
// divided by a hop's load on it times the number of sibling groups that share it.
#include "model/cluster/routed_groups.h"

#include <gtest/gtest.h>

#include "tests/model/cluster/clusters.h"

namespace trainyard {
namespace {

using enum FabricRouting;

constexpr BytesPerSecond kLinkOfSwitch(40e9);
constexpr double kNicOfNode = 50e9;

double ring_rate(const Cluster& cluster, GroupShape shape) {
  const GroupLinks links = group_links(tiers_of(cluster), shape);
  return links.across.value() * links.ranks_per_domain;
}
double all_to_all_rate(const Cluster& cluster, GroupShape shape) {
  return group_links(tiers_of(cluster), shape).across_all_to_all.value();
}

TEST(RoutedGroups, ARingAlongATorusHasALinkToItself) {
  const Cluster cluster = torus_cluster({8}, kLinkOfSwitch);
  EXPECT_DOUBLE_EQ(ring_rate(cluster, {1, 64}), 40e9);
  EXPECT_DOUBLE_EQ(ring_rate(cluster, {8, 8}), 40e9 / 8);  // one of eight rings side by side
}

TEST(RoutedGroups, StridesOverATorusShareItsLinks) {
  // One ring on nodes 0, 2, 4 and 6, one on 1, 3, 5 and 7, eight of each: every hop takes two
  // links.
  EXPECT_DOUBLE_EQ(ring_rate(torus_cluster({8}, kLinkOfSwitch), {16, 4}), 40e9 / 16);
  // Along the second dimension every hop takes one link again.
  EXPECT_DOUBLE_EQ(ring_rate(torus_cluster({4, 4}, kLinkOfSwitch), {32, 4}), 40e9 / 8);
}

TEST(RoutedGroups, ARingOverPartOfALineComesBackOverIt) {
  // Nodes 0 … 3 of 16: three hops forward, and three links back.
  EXPECT_DOUBLE_EQ(ring_rate(torus_cluster({16}, kLinkOfSwitch), {1, 32}), 40e9);
}

TEST(RoutedGroups, NicsLimitWhereLinksDoNot) {
  const Cluster cluster = torus_cluster({8}, BytesPerSecond(1e12));
  EXPECT_DOUBLE_EQ(ring_rate(cluster, {1, 64}), 8 * kNicOfNode);
  EXPECT_DOUBLE_EQ(ring_rate(cluster, {8, 8}), kNicOfNode);
}

// The last members of a node send, each by its own NIC; the link to the next node carries all of
// them.
TEST(RoutedGroups, MessagesThatArePassedOnShareATorussLinks) {
  const auto passing = [](const Cluster& cluster, GroupShape shape) {
    return group_links(tiers_of(cluster), shape).passing.value();
  };
  const Cluster narrow = torus_cluster({8}, kLinkOfSwitch);
  EXPECT_DOUBLE_EQ(passing(narrow, {1, 64}), 40e9);
  EXPECT_DOUBLE_EQ(passing(narrow, {4, 16}), 40e9 / 4);
  EXPECT_DOUBLE_EQ(passing(narrow, {8, 8}), 40e9 / 8);
  Cluster wide = torus_cluster({8}, BytesPerSecond(1e12));
  EXPECT_DOUBLE_EQ(passing(wide, {4, 16}), kNicOfNode);
  wide.inter.nics_per_node = 2;
  EXPECT_DOUBLE_EQ(passing(wide, {4, 16}), kNicOfNode / 4);  // ranks 4 to 7 on one NIC
}

void expect_hops(const Cluster& cluster, const std::vector<double>& around,
                 const std::vector<double>& along, double ends, double mirrors) {
  const FabricTiers tiers = tiers_of(cluster);
  const HopTimes* counted = hop_times(tiers, {8, 4});
  ASSERT_NE(counted, nullptr);
  const HopTimes& hops = *counted;
  ASSERT_EQ(hops.around.size(), around.size());
  ASSERT_EQ(hops.along.size(), along.size());
  for (std::size_t i = 0; i < around.size(); ++i) {
    EXPECT_NEAR(hops.around[i], around[i], 1e-9) << i;
    EXPECT_NEAR(hops.along[i], along[i], 1e-9) << i;
  }
  EXPECT_NEAR(hops.ends, ends, 1e-9);
  EXPECT_NEAR(hops.mirrors, mirrors, 1e-9);
}

// Eight ranks of a node send to the next node. Below a leaf each has its NIC; two cables of 100
// GB/s between leaves leave each half of that, and where all nodes send there, a quarter.
TEST(RoutedGroups, MessagesBelowALeafTakeLessTimeThanThoseBetweenLeaves) {
  expect_hops(drawn_cluster(BytesPerSecond(100e9)), {0.5, 1, 0.5, 1}, {0.5, 1, 0.5, 0.5}, 1, 2);
}

// Nodes at the corners of a square. Sides carry a whole message (0 → 1, 2 → 3), diagonals half of
// one over each way (1 → 2, 3 → 0), which takes as long beside another half on the same link, and
// half the time alone.
TEST(RoutedGroups, MessagesTakeTheTimeOfTheFullestLinkOnTheirWay) {
  expect_hops(torus_cluster({2, 2}, kLinkOfSwitch), {1, 1, 1, 1}, {1, 0.5, 1, 1}, 0.5, 1);
}

// The same square with links that leave each of eight ranks 25 GB/s on a side, 50 on a diagonal
// alone, but a PCIe link of 32 GB/s to each rank.
TEST(RoutedGroups, MessagesAreNotFasterThanTheirSendersLink) {
  Cluster square = torus_cluster({2, 2}, BytesPerSecond(200e9));
  square.intra = pcie_cluster(4, 8).intra;
  expect_hops(square, {1, 1, 1, 1}, {1, 25.0 / 32, 1, 1}, 25.0 / 32, 1);
}

TEST(RoutedGroups, EfficiencyIsTakenOffTheLinks) {
  Cluster cluster = torus_cluster({8}, kLinkOfSwitch);
  cluster.inter.efficiency = 0.5;
  EXPECT_DOUBLE_EQ(ring_rate(cluster, {1, 64}), 20e9);
}

TEST(RoutedGroups, AnAllToAllOnARingOfEightUsesEveryLinkAlike) {
  // From each of 8 nodes, the distances to the others are 1 1 2 2 3 3 4, in sum 16. The 128 hops,
  // each with an eighth of what a node holds, share 16 one-way links, so a link carries what one
  // node holds. 7/8 of what a rank holds leaves its node.
  EXPECT_NEAR(all_to_all_rate(torus_cluster({8}, kLinkOfSwitch), {1, 64}), 40e9 / 8 * 7 / 8, 1);
}

TEST(RoutedGroups, AnAllToAllInAPlaneIsHeldUpByTheLongerDimension) {
  // 8 × 2: each row of 8 is as the ring above, and half of the bytes cross to the other row by one
  // link per node: 8 ranks × 1/2.
  EXPECT_NEAR(all_to_all_rate(torus_cluster({8, 2}, kLinkOfSwitch), {1, 128}), 40e9 / 8 * 15 / 16,
              1);
}

TEST(RoutedGroups, BeyondTheCountedPairsSomeDistancesStandForAll) {
  // 1,024 nodes of a 32 × 32 torus. Along each side of K nodes the traffic is that of a ring: K²/8
  // pairs of nodes per one-way link.
  const Cluster cluster = torus_cluster({32, 32}, kLinkOfSwitch);
  const double expected = 40e9 * 8 / 32 / 8 * 1023 / 1024;
  EXPECT_NEAR(all_to_all_rate(cluster, {1, 8192}), expected, 0.05 * expected);
}

TEST(RoutedGroups, GroupsOfADragonflyShareTheLinkBetweenThem) {
  // Five groups of one switch each. Eight rings over two groups all use their one link.
  const Cluster cluster = dragonfly_cluster(5, 1, 4, kLinkOfSwitch);
  EXPECT_DOUBLE_EQ(ring_rate(cluster, {8, 2}), 40e9 / 8);
  // With Valiant's routing each of the three other groups carries a third of the hops both ways,
  // and also those of nodes 2 and 3, whose routes pass there.
  const Cluster detours = with_routing(cluster, valiant);
  EXPECT_DOUBLE_EQ(ring_rate(detours, {1, 16}), 40e9 / (2.0 / 3));
}

TEST(RoutedGroups, ADrawnFabricIsReadOffItsLinks) {
  // 100 GB/s from each leaf to each of two spines.
  const Cluster cluster = drawn_cluster(BytesPerSecond(100e9));
  EXPECT_DOUBLE_EQ(ring_rate(cluster, {1, 16}), 8 * kNicOfNode);  // below a leaf
  EXPECT_DOUBLE_EQ(ring_rate(cluster, {1, 32}), 200e9);           // over both spines
  EXPECT_DOUBLE_EQ(ring_rate(cluster, {16, 2}), 2 * 100e9 / 16);  // all 16 ranks of a leaf
  // Half of what 16 ranks hold crosses between the leaves; 3/4 leaves each node.
  EXPECT_NEAR(all_to_all_rate(cluster, {1, 32}), 200e9 / 16 / 0.5 * 0.75, 1);
}

TEST(RoutedGroups, AFabricDrawnLikeATreeHasTheTreesRates) {
  // Leaves of two nodes with uplinks of half their bandwidth: 16 NICs · 50 GB/s / 2 = 2 · 200 GB/s.
  const Cluster drawn = drawn_cluster(BytesPerSecond(200e9));
  const Cluster tree = fat_tree_cluster(4, 2, 2);
  for (const GroupShape shape : {GroupShape{1, 32}, {8, 4}, {16, 2}, {4, 8}, {1, 4, 2, 16}}) {
    EXPECT_NEAR(ring_rate(drawn, shape), ring_rate(tree, shape), 1);
    EXPECT_NEAR(all_to_all_rate(drawn, shape), all_to_all_rate(tree, shape), 1);
  }
}

TEST(RoutedGroups, StaticRoutingIsNeverFasterThanAdaptive) {
  for (const double oversubscription : {1.0, 2.0, 4.0}) {
    const Cluster tree = fat_tree_cluster(8, 2, oversubscription);
    for (const GroupShape shape : {GroupShape{1, 64}, {8, 8}, {16, 4}, {4, 16}}) {
      const double adaptive_rate = ring_rate(tree, shape);
      const double static_rate = ring_rate(with_routing(tree, static_paths), shape);
      EXPECT_LE(static_rate, adaptive_rate * (1 + 1e-12));
      EXPECT_GT(static_rate, 0);
    }
  }
}

TEST(RoutedGroups, AShapeHasTheSameRatesEveryTime) {
  const FabricTiers tiers = tiers_of(torus_cluster({4, 4}, kLinkOfSwitch));
  const GroupLinks first = group_links(tiers, {8, 16});
  group_links(tiers, {1, 128});
  const GroupLinks again = group_links(tiers, {8, 16});
  EXPECT_EQ(first.across, again.across);
  EXPECT_EQ(first.across_all_to_all, again.across_all_to_all);
}

}  // namespace
}  // namespace trainyard
