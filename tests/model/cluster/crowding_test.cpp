// Recursive and tree algorithms between domains, with the messages on the uplinks of leaves counted
// by hand. S = 1 GB, NICs of 50 GB/s, α of 10 µs between nodes and 3 µs inside them.
#include "model/cluster/crowding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/model/cluster/clusters.h"
#include "tests/model/cost/collectives/example_links.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

constexpr double kAcross = 10e-6;
constexpr double kInside = 3e-6;

double seconds(const Cluster& cluster, GroupShape shape, CollectiveOperation operation,
               std::string_view algorithm) {
  return named_time(algorithm, operation, group_links(tiers_of(cluster), shape), Bytes(1e9))
      .value();
}

// Two leaves of two nodes with 200 GB/s between the leaves. Eight groups with one member on each
// node.
struct TwoLeaves {
  Cluster cluster = fat_tree_cluster(4, 2, 4);
  double of(CollectiveOperation operation, std::string_view algorithm) const {
    return seconds(cluster, {8, 4}, operation, algorithm);
  }
};

TEST(Crowding, OfRecursiveAlgorithmsIsWhoeverCrossesTheLeaf) {
  // To the next node, one of the two nodes sends out of its leaf: eight messages over 200 GB/s. To
  // the second next node, both do: sixteen messages.
  const TwoLeaves two;
  EXPECT_NEAR(two.of(all_reduce, "recursive-doubling"), 2 * kAcross + 1 / 25.0 + 1 / 12.5, 1e-12);
  const double halves = 0.25 / 25 + 0.5 / 12.5;
  EXPECT_NEAR(two.of(all_gather, "recursive-doubling"), 2 * kAcross + halves, 1e-12);
  EXPECT_NEAR(two.of(reduce_scatter, "recursive-halving"), 2 * kAcross + halves, 1e-12);
  EXPECT_NEAR(two.of(all_reduce, "recursive-halving-doubling"), 4 * kAcross + 2 * halves, 1e-12);
}

TEST(Crowding, OfTreesIsTheMessagesThatCrossTheLeaf) {
  const TwoLeaves two;
  // Node 0 sends to 1 below its leaf. Then 0 sends to 2 and 1 to 3: sixteen messages over 200 GB/s.
  EXPECT_NEAR(two.of(broadcast, "binomial"), 2 * kAcross + 1 / 50.0 + 1 / 12.5, 1e-12);
  // Half of the message goes to the other leaf and a quarter to the neighbour. Then a ring, whose
  // messages cross to the other leaf once per step.
  EXPECT_NEAR(two.of(broadcast, "scatter-all-gather"),
              2 * kAcross + 0.5 / 25 + 0.25 / 50 + 3 * (kAcross + 0.25 / 25), 1e-12);
  // In one tree, nodes 2 and 3 each send half a message to the other leaf; in the other tree, 0 and
  // 1 do.
  EXPECT_NEAR(two.of(all_reduce, "double-binary-tree"), 4 * kAcross + 2 * (1 + 524288e-9) / 25,
              1e-12);
}

TEST(Crowding, OfSumsIsOneForEveryLeaf) {
  const TwoLeaves two;
  EXPECT_NEAR(two.of(all_reduce, "sharp"), 2 * kAcross + 1 / 25.0, 1e-12);
  EXPECT_NEAR(seconds(two.cluster, {16, 2}, all_reduce, "sharp"), 2 * kAcross + 1 / 12.5, 1e-12);
  // One sum crosses 200 GB/s, so the limit is the NIC by which every member sends up.
  EXPECT_NEAR(seconds(two.cluster, {1, 32}, all_reduce, "sharp"), 2 * kAcross + 1 / 50.0, 1e-12);
}

TEST(Crowding, OfFirstMembersIsTheLeafsInATreeAndOneRailsOnRails) {
  // Eight members per node; inside, three rounds at 450 GB/s. Node 0 sends to 1; then 0 to 2 and 1
  // to 3.
  const double inside = 3 * (kInside + 1 / 450.0) + 2 * kAcross;
  // Two messages over the leaf's 200 GB/s: the NICs of 50 GB/s limit them.
  EXPECT_NEAR(seconds(fat_tree_cluster(4, 2, 4), {1, 32}, broadcast, "binomial"),
              inside + 1 / 50.0 + 1 / 50.0, 1e-12);
  // Two messages over the 25 GB/s of the one rail.
  EXPECT_NEAR(seconds(rail_cluster(4, 2, 4), {1, 32}, broadcast, "binomial"),
              inside + 1 / 50.0 + 2 / 25.0, 1e-12);
}

TEST(Crowding, KnowsThreeNodesALeaf) {
  // Two leaves of three nodes with 400 GB/s between them, and eight groups. Of a leaf's three
  // nodes, one sends out of it to the next node, two to the second next, and two to the fourth next
  // (0 to 4, 1 to 5; 2 sends to 0).
  const Cluster cluster = fat_tree_cluster(6, 3, 3);
  EXPECT_NEAR(seconds(cluster, {8, 6}, all_reduce, "recursive-doubling"),
              3 * kAcross + 1 / 50.0 + 1 / 25.0 + 1 / 25.0, 1e-12);
  // The three rounds carry one, two and two sixths of the message.
  EXPECT_NEAR(seconds(cluster, {8, 6}, all_gather, "recursive-doubling"),
              3 * kAcross + 1 / 300.0 + 2 / 150.0 + 2 / 150.0, 1e-12);
  // Node 0 sends to 1; then 0 to 2 and 1 to 3; then 0 to 4 and 1 to 5.
  EXPECT_NEAR(seconds(cluster, {8, 6}, broadcast, "binomial"),
              3 * kAcross + 1 / 50.0 + 1 / 50.0 + 1 / 25.0, 1e-12);
  // Node 0 sends three blocks to 3; then 0 to 2 and 3 to 5 send one block each, then 0 to 1 and 3
  // to 4.
  const double ring = 5 * (kAcross + 1 / 300.0);
  EXPECT_NEAR(seconds(cluster, {8, 6}, broadcast, "scatter-all-gather"),
              3 * kAcross + 3 / 300.0 + 1 / 300.0 + 1 / 300.0 + ring, 1e-12);
}

// Counted member by member.
Straddling counted(GroupShape group, int ranks, int devices) {
  const int block = group.stride * group.size;
  int groups = 0, members = 0;
  double pairs = 0;
  for (int first = 0; first < devices; first += ranks) {
    int groups_here = 0;
    double pairs_here = 0;
    for (int sibling = 0; sibling < devices / block * group.stride; ++sibling) {
      int inside = 0;
      for (int i = 0; i < group.size; ++i) {
        const int rank = sibling / group.stride * block + sibling % group.stride + i * group.stride;
        inside += first <= rank && rank < first + ranks ? 1 : 0;
      }
      if (inside == 0 || inside == group.size) continue;
      ++groups_here;
      pairs_here += inside * (group.size - inside);
      members = std::max(members, inside);
    }
    groups = std::max(groups, groups_here);
    pairs = std::max(pairs, pairs_here);
  }
  return {static_cast<double>(ranks) / groups, pairs / ranks, members, false};
}

TEST(Straddling, IsThatOfItsMembersOneByOne) {
  for (const auto& [group, ranks, devices] : {std::tuple{GroupShape{8, 63}, 256, 504},
                                              {{8, 65}, 256, 520},
                                              {{8, 3}, 256, 504},
                                              {{24, 21}, 256, 504},
                                              {{6, 9}, 256, 1026},
                                              {{1, 3}, 8, 24},
                                              {{5, 7}, 32, 140},
                                              {{8, 64}, 256, 512},
                                              {{64, 4}, 32, 512}}) {
    const Straddling expected = counted(group, ranks, devices);
    const Straddling found = straddling(group, ranks, devices);
    EXPECT_DOUBLE_EQ(found.share, expected.share) << group.stride << " x " << group.size;
    EXPECT_DOUBLE_EQ(found.outside, expected.outside) << group.stride << " x " << group.size;
    EXPECT_EQ(found.members, expected.members) << group.stride << " x " << group.size;
  }
  EXPECT_TRUE(straddling({8, 64}, 256, 512).aligned);
}

TEST(Crowding, IsExactlyNoneWhereNicsDecide) {
  const auto none = [](const Cluster& cluster, GroupShape shape) {
    const Crowding crowding = group_links(tiers_of(cluster), shape).crowding;
    for (const double times : {crowding.halving, crowding.doubling, crowding.binomial,
                               crowding.scatter, crowding.trees, crowding.sums}) {
      EXPECT_EQ(times, 1) << cluster.nodes << " nodes, " << shape.stride << " x " << shape.size;
    }
  };
  for (const GroupShape shape : {GroupShape{1, 64}, {8, 8}, {16, 4}, {4, 16}, {8, 2}}) {
    none(fat_tree_cluster(8, 2, 1), shape);
    none(rail_cluster(8, 2, 1), shape);
  }
  none(fat_tree_cluster(8, 4, 4), {8, 4});  // below one leaf
  none(fat_tree_cluster(8, 4, 4), {1, 8});  // in one node
}

TEST(Crowding, OfATorusIsWhoeverPassesALink) {
  // Eight groups around four nodes with links of 40 GB/s. To the neighbour it is one hop. To the
  // second next it is two hops, with half of the messages each way round. A link carries 8 messages
  // in both rounds.
  const Cluster torus = torus_cluster({4}, BytesPerSecond(40e9));
  EXPECT_NEAR(seconds(torus, {8, 4}, all_reduce, "recursive-doubling"),
              2 * kAcross + 8 / 40.0 + 8 / 40.0, 1e-12);
}

TEST(Crowding, DecidesWhichAlgorithmIsChosen) {
  // Eight groups around eight nodes. In each of a ring's seven steps eight messages share a link of
  // 40 GB/s: 70 µs + 175 µs per MB. The rounds of doubling put 8, 16 (two hops) and 16 (four hops,
  // half of the messages each way round) messages of 1, 2 and 4 eighths on a link: 30 µs + 325 µs
  // per MB.
  const GroupLinks links = group_links(tiers_of(torus_cluster({8}, BytesPerSecond(40e9))), {8, 8});
  EXPECT_NEAR(named_time("ring", all_gather, links, Bytes(1e6)).value(), 245e-6, 1e-12);
  EXPECT_NEAR(named_time("recursive-doubling", all_gather, links, Bytes(1e6)).value(), 355e-6,
              1e-12);
  EXPECT_EQ(collective_algorithm(all_gather, links, Bytes(1e6), {})->name, "ring");
  EXPECT_EQ(collective_algorithm(all_gather, links, Bytes(1e5), {})->name, "recursive-doubling");
}

}  // namespace
}  // namespace trainyard
