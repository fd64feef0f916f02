// Contention follows from the links, without any setting. Shares are computed by hand: 1 GB takes
// 20 ms over a NIC of 50 GB/s and 2.2 ms over NVLink of 450 GB/s; α is 10 µs and 3 µs.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/cluster/topology_graph.h"
#include "tests/model/cluster/clusters.h"
#include "tests/simulator/call_graph.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

constexpr double kAlpha = 10e-6;
constexpr double kNic = 50e9;
const Bytes kMessage(1e9);

class AtGrain : public testing::TestWithParam<NetworkGrain> {
 protected:
  static std::vector<double> seconds(const Cluster& cluster, const TopologyGraph& topology,
                                     const std::vector<TaskGroup>& groups, const Call& call) {
    const TaskGraph graph = call_graph(cluster.devices(), groups, std::vector(groups.size(), call));
    return group_seconds(graph, cluster, topology, GetParam());
  }
  static std::vector<double> sends(const Cluster& cluster, const std::vector<TaskGroup>& pairs) {
    return seconds(cluster, make_topology(cluster), pairs, named_call(send, "direct", kMessage));
  }
};

INSTANTIATE_TEST_SUITE_P(Grains, AtGrain,
                         testing::Values(NetworkGrain::collective, NetworkGrain::message),
                         [](const auto& grain) {
                           return grain.param == NetworkGrain::message ? "message" : "collective";
                         });

TEST_P(AtGrain, TwoDevicesOfOneNicHaveHalfOfIt) {
  const Cluster cluster = four_nic_cluster(2);  // NIC 0 serves devices 0 and 1, NIC 1 2 and 3
  EXPECT_NEAR(sends(cluster, {{0, 8}})[0], kAlpha + 1e9 / kNic, 1e-9);
  const auto both = sends(cluster, {{0, 8}, {1, 9}, {2, 10}});
  EXPECT_NEAR(both[0], kAlpha + 2 * 1e9 / kNic, 1e-9);
  EXPECT_NEAR(both[1], kAlpha + 2 * 1e9 / kNic, 1e-9);
  EXPECT_NEAR(both[2], kAlpha + 1e9 / kNic, 1e-9);
}

TEST_P(AtGrain, AnOversubscribedLeafIsSharedByAllThatCrossIt) {
  // Leaves of 2 nodes with 16 NICs below and a quarter of their bandwidth above: 200 GB/s for 16
  // messages.
  const Cluster cluster = fat_tree_cluster(4, 2, 4);
  std::vector<TaskGroup> crossing;
  std::vector<TaskGroup> below;
  for (int rank = 0; rank < 16; ++rank) crossing.push_back({rank, rank + 16});
  for (int rank = 0; rank < 8; ++rank) below.push_back({rank, rank + 8});
  EXPECT_NEAR(sends(cluster, crossing)[0], kAlpha + 16 * 1e9 / 200e9, 1e-9);
  EXPECT_NEAR(sends(cluster, below)[0], kAlpha + 1e9 / kNic, 1e-9);
  crossing.resize(3);  // 3 · 50 GB/s fit
  EXPECT_NEAR(sends(cluster, crossing)[0], kAlpha + 1e9 / kNic, 1e-9);
}

TEST_P(AtGrain, AReceiverIsSharedAsMuchAsASender) {
  const auto seconds = sends(fat_tree_cluster(4, 4, 1), {{0, 24}, {8, 24}, {16, 24}, {16, 25}});
  EXPECT_NEAR(seconds[0], kAlpha + 3 * 1e9 / kNic, 1e-9);
  // 16 sends to 24 at a third of a NIC, so its message to 25 has the other two thirds.
  EXPECT_NEAR(seconds[3], kAlpha + 1.5 * 1e9 / kNic, 1e-9);
}

TEST_P(AtGrain, RailsDoNotMeet) {
  const auto seconds = sends(rail_cluster(2, 2, 1), {{0, 8}, {1, 9}, {2, 10}, {7, 15}});
  for (const double one : seconds) EXPECT_NEAR(one, kAlpha + 1e9 / kNic, 1e-9);
}

TEST_P(AtGrain, InARailOptimisedFabricTrafficChangesRailInItsOwnNode) {
  // 0 and 1 both send to devices of rail 3: they share NIC 3 of their node.
  const auto seconds = sends(rail_cluster(3, 3, 1), {{0, 11}, {1, 19}});
  EXPECT_NEAR(seconds[0], kAlpha + 2 * 1e9 / kNic, 1e-9);
  EXPECT_NEAR(seconds[1], kAlpha + 2 * 1e9 / kNic, 1e-9);
}

TEST_P(AtGrain, TwoRingsOnTheSameLinksTakeTwiceAsLong) {
  const Cluster cluster = fat_tree_cluster(1, 1, 1);
  const TaskGroup all = {0, 1, 2, 3, 4, 5, 6, 7};
  const Call call = named_call(all_reduce, "ring", Bytes(1e9));
  const double moving = 2 * 7.0 / 8 * 1e9 / 450e9;
  const double alpha = 2 * 7 * 3e-6;
  const auto topology = make_topology(cluster);
  EXPECT_NEAR(seconds(cluster, topology, {all}, call)[0], alpha + moving, 1e-8);
  const auto both = seconds(cluster, topology, {all, all}, call);
  EXPECT_NEAR(both[0], alpha + 2 * moving, 1e-8);
  EXPECT_NEAR(both[1], alpha + 2 * moving, 1e-8);
}

TEST_P(AtGrain, RingsOfOtherDevicesOfOneSwitchDoNotMeet) {
  const Cluster cluster = fat_tree_cluster(1, 1, 1);
  const Call call = named_call(all_reduce, "ring", Bytes(1e9));
  const auto both = seconds(cluster, make_topology(cluster), {{0, 1, 2, 3}, {7, 6, 5, 4}}, call);
  EXPECT_NEAR(both[0], 6 * 3e-6 + 2 * 3.0 / 4 * 1e9 / 450e9, 1e-8);
  EXPECT_NEAR(both[1], both[0], 1e-12);
}

TEST_P(AtGrain, ASlowNicHoldsUpTheRingThatUsesItAndNoOther) {
  const Cluster cluster = fat_tree_cluster(4, 4, 1);
  TopologyGraph topology = make_topology(cluster);
  degrade(topology, {.of = {VertexKind::nic, 3}, .rate = 0.5});  // device 3 of node 0
  const auto groups = sibling_groups(cluster.devices(), {8, 4});
  const Call call = named_call(all_reduce, "ring", Bytes(1e9));
  const auto taken = seconds(cluster, topology, groups, call);
  const double moving = 2 * 3.0 / 4 * 1e9 / kNic;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    EXPECT_NEAR(taken[group], 6 * kAlpha + (group == 3 ? 2 : 1) * moving, 1e-8);
  }
}

TEST_P(AtGrain, ADegradedSwitchHoldsUpWhatCrossesIt) {
  const Cluster cluster = fat_tree_cluster(4, 2, 1);
  TopologyGraph topology = make_topology(cluster);
  degrade(topology, {.of = {VertexKind::leaf, 1}, .rate = 0.25});
  const auto taken =
      seconds(cluster, topology, {{0, 8}, {16, 24}}, named_call(send, "direct", kMessage));
  EXPECT_NEAR(taken[0], kAlpha + 1e9 / kNic, 1e-9);
  EXPECT_NEAR(taken[1], kAlpha + 4 * 1e9 / kNic, 1e-9);
}

// ---- Fabrics that are no tree -------------------------------------------------------------------

TEST_P(AtGrain, TwoRingsOnOneTorusLinkShareIt) {
  // Nodes 0 and 1 of a ring of nodes; a link carries 40 GB/s, a NIC 50.
  const Cluster cluster = torus_cluster({8}, BytesPerSecond(40e9));
  EXPECT_NEAR(sends(cluster, {{0, 8}})[0], kAlpha + 1e9 / 40e9, 1e-9);
  const auto both = sends(cluster, {{0, 8}, {1, 9}, {2, 58}});  // the third goes the other way
  EXPECT_NEAR(both[0], kAlpha + 2 * 1e9 / 40e9, 1e-9);
  EXPECT_NEAR(both[1], kAlpha + 2 * 1e9 / 40e9, 1e-9);
  EXPECT_NEAR(both[2], kAlpha + 1e9 / 40e9, 1e-9);
}

TEST_P(AtGrain, DimensionOrderMeetsWhereAdaptiveRoutingGoesRound) {
  // A 4 × 4 torus with links of 25 GB/s. A message goes from (0, 0) to (1, 1), another from (0, 0)
  // to (1, 0). In dimension order both leave by the first link of the row; with adaptive routing
  // half of the first message goes by the column.
  const Cluster adaptive = torus_cluster({4, 4}, BytesPerSecond(25e9));
  const Cluster ordered = with_routing(adaptive, FabricRouting::static_paths);
  EXPECT_NEAR(sends(ordered, {{0, 40}})[0], kAlpha + 1e9 / 25e9, 1e-9);
  EXPECT_NEAR(sends(adaptive, {{0, 40}})[0], kAlpha + 1e9 / 50e9, 1e-9);
  const auto ordered_both = sends(ordered, {{0, 40}, {1, 9}});
  EXPECT_NEAR(ordered_both[0], kAlpha + 2 * 1e9 / 25e9, 1e-9);
  EXPECT_NEAR(ordered_both[1], kAlpha + 2 * 1e9 / 25e9, 1e-9);
  // x/2 + y = 25 with x = y: 50/3 GB/s each, and both end at the same time.
  const auto adaptive_both = sends(adaptive, {{0, 40}, {1, 9}});
  EXPECT_NEAR(adaptive_both[0], kAlpha + 3 * 1e9 / 50e9, 1e-9);
  EXPECT_NEAR(adaptive_both[1], kAlpha + 3 * 1e9 / 50e9, 1e-9);
}

TEST_P(AtGrain, FlowsThatAHashPutsOnOneUplinkHaveHalfOfItAndAdaptiveOnesSpread) {
  // A leaf of 8 NICs with two uplinks of 50 GB/s. At least two of three flows are hashed to the
  // same uplink; spread evenly, the flows have 100 GB/s together.
  const Cluster adaptive = fat_tree_cluster(2, 1, 4);
  const Cluster hashed = with_routing(adaptive, FabricRouting::static_paths);
  const std::vector<TaskGroup> three = {{0, 8}, {1, 9}, {2, 10}};
  for (const double one : sends(adaptive, three)) EXPECT_NEAR(one, kAlpha + 1.5 / 50, 1e-9);
  auto seconds = sends(hashed, three);
  std::ranges::sort(seconds);
  const bool all_meet = seconds[0] > kAlpha + 2.5 / 50;
  EXPECT_NEAR(seconds[2], kAlpha + (all_meet ? 3.0 : 2.0) / 50, 1e-9);
  EXPECT_NEAR(seconds[0], kAlpha + (all_meet ? 3.0 : 1.0) / 50, 1e-9);
}

TEST_P(AtGrain, TwoFlowsUnderAHashMeetWhollyOrNotAtAll) {
  const Cluster adaptive = fat_tree_cluster(2, 1, 4);
  const Cluster hashed = with_routing(adaptive, FabricRouting::static_paths);
  int met = 0;
  for (int other = 1; other < 8; ++other) {
    const std::vector<TaskGroup> two = {{0, 8}, {other, 8 + other}};
    EXPECT_NEAR(sends(adaptive, two)[0], kAlpha + 1.0 / 50, 1e-9);
    const auto seconds = sends(hashed, two);
    const bool together = seconds[0] > kAlpha + 1.5 / 50;
    for (const double one : seconds) EXPECT_NEAR(one, kAlpha + (together ? 2.0 : 1.0) / 50, 1e-9);
    met += together ? 1 : 0;
  }
  EXPECT_GT(met, 0);
  EXPECT_LT(met, 7);
}

TEST_P(AtGrain, ValiantsRoutingUsesTheGroupsBetween) {
  // Five groups of one switch with 40 GB/s between any two. Eight messages share the one link
  // between their groups, or, with Valiant's routing, three routes of two links each.
  const Cluster minimal = dragonfly_cluster(5, 1, 4, BytesPerSecond(40e9));
  std::vector<TaskGroup> pairs;
  for (int rank = 0; rank < 8; ++rank) pairs.push_back({rank, rank + 8});
  EXPECT_NEAR(sends(minimal, pairs)[0], kAlpha + 8 * 1e9 / 40e9, 1e-9);
  const Cluster valiant = with_routing(minimal, FabricRouting::valiant);
  EXPECT_NEAR(sends(valiant, pairs)[0], kAlpha + 8 * 1e9 / 120e9, 1e-9);
}

TEST_P(AtGrain, AnOversubscribedLeafOfADrawnFabricIsSharedByAllThatCrossIt) {
  // 16 NICs below each leaf, and 100 GB/s from it to each of two spines.
  const Cluster cluster = drawn_cluster(BytesPerSecond(100e9));
  std::vector<TaskGroup> crossing;
  for (int rank = 0; rank < 16; ++rank) crossing.push_back({rank, rank + 16});
  EXPECT_NEAR(sends(cluster, crossing)[0], kAlpha + 16 * 1e9 / 200e9, 1e-9);
  EXPECT_NEAR(sends(cluster, {{0, 8}})[0], kAlpha + 1e9 / kNic, 1e-9);
}

// A ring of all 16 ranks uses 1/8 of each of the 8 NICs of a node for each of its bytes. A message
// over NIC 0 beside it has the rate y = x with x/8 + y = 50 GB/s until it ends.
TEST(Contention, BetweenAMessageAndARingOverAllNicsIsFair) {
  const Cluster cluster = fat_tree_cluster(2, 2, 1);
  TaskGroup all;
  for (int rank = 0; rank < 16; ++rank) all.push_back(rank);
  const TaskGraph graph = call_graph(
      16, {all, {0, 8}},
      {named_call(all_reduce, "ring", Bytes(64e9)), named_call(send, "direct", kMessage)});
  const auto taken =
      group_seconds(graph, cluster, make_topology(cluster), NetworkGrain::collective);
  const double share = kNic / 1.125;
  const double ring = 28 * cluster.intra.latency.value() + 2 * kAlpha;
  const double before = ring - kAlpha;  // time in which the message is alone
  EXPECT_NEAR(taken[1], ring + (1e9 - before * kNic) / share, 1e-8);
}

}  // namespace
}  // namespace trainyard
