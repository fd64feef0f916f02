// The links of groups: figures that can be counted by hand (handbook §6, "which links"), and
// agreement with flows routed over the graph, all sibling groups at once.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/cluster/topology_graph.h"
#include "tests/model/cluster/clusters.h"

namespace trainyard {
namespace {

constexpr double kNic = 50e9;

TEST(GroupLinks, AGroupInANodeUsesNvlink) {
  const GroupLinks links = group_links(tiers_of(fat_tree_cluster(4, 4, 1)), {1, 8});
  EXPECT_EQ(links.domains, 1);
  EXPECT_EQ(links.ranks_per_domain, 8);
  EXPECT_DOUBLE_EQ(links.inside.value(), 450e9);
}

TEST(GroupLinks, WithEightTensorRanksEachDataGroupHasANicToItself) {
  const GroupLinks links = group_links(tiers_of(fat_tree_cluster(4, 4, 1)), {8, 4});
  EXPECT_EQ(links.ranks_per_domain, 1);
  EXPECT_EQ(links.domains, 4);
  EXPECT_DOUBLE_EQ(links.across.value(), kNic);
}

TEST(GroupLinks, WithoutTensorRanksEightOfOneRingShareAllNics) {
  const GroupLinks links = group_links(tiers_of(fat_tree_cluster(4, 4, 1)), {1, 32});
  EXPECT_EQ(links.ranks_per_domain, 8);
  EXPECT_EQ(links.domains, 4);
  EXPECT_DOUBLE_EQ(links.across.value() * links.ranks_per_domain, 8 * kNic);
}

TEST(GroupLinks, FourNicsGiveEachOfEightMembersHalfOfOne) {
  EXPECT_DOUBLE_EQ(group_links(tiers_of(four_nic_cluster(4)), {8, 4}).across.value(), kNic / 2);
}

TEST(GroupLinks, AnNvlinkDomainBeyondANodeKeepsTheGroupInside) {
  const FabricTiers tiers = tiers_of(nvl72_cluster(36));
  EXPECT_EQ(group_links(tiers, {1, 72}).domains, 1);
  EXPECT_EQ(group_links(tiers, {8, 9}).domains, 1);
  EXPECT_EQ(group_links(tiers, {1, 144}).domains, 2);
}

TEST(GroupLinks, AMeshGivesAPairOneLinkAndAllEightTheirSum) {
  const FabricTiers tiers = tiers_of(mesh_cluster(1));
  EXPECT_NEAR(group_links(tiers, {1, 2}).inside.value(), 20e9, 1);
  EXPECT_NEAR(group_links(tiers, {1, 4}).inside.value(), 60e9, 1);
  EXPECT_NEAR(group_links(tiers, {1, 8}).inside.value(), 140e9, 1);
}

TEST(GroupLinks, OversubscriptionSlowsAnAllToAllAtOnceAndARingOnlyWhenLeavesHoldOneMember) {
  // Leaves of 4 nodes whose uplinks have a quarter of the NICs' bandwidth: a leaf with 4 nodes × 8
  // NICs has uplinks worth 8 NICs, one per rail.
  const FabricTiers tiers = tiers_of(fat_tree_cluster(16, 4, 4));
  const GroupLinks data = group_links(tiers, {8, 16});  // 4 members a leaf
  EXPECT_DOUBLE_EQ(data.across.value(), kNic);          // the ring passes each leaf once
  // 15/16 of a member's data leave its node by one NIC; 12/16 leave the leaf at a quarter of its
  // rate.
  EXPECT_DOUBLE_EQ(data.across_all_to_all.value(), kNic / 4 * 15 / 12);
  const GroupLinks pipeline = group_links(tiers, {32, 4});  // one member a leaf
  EXPECT_DOUBLE_EQ(pipeline.across.value(), kNic / 4);
}

TEST(GroupLinks, AGroupBelowOneLeafDoesNotFeelOversubscription) {
  const FabricTiers tiers = tiers_of(fat_tree_cluster(16, 4, 4));
  EXPECT_DOUBLE_EQ(group_links(tiers, {8, 4}).across_all_to_all.value(), kNic);
}

double passing(const Cluster& cluster, GroupShape shape) {
  return group_links(tiers_of(cluster), shape).passing.value();
}

// Each group has two members in each of two nodes of eight, ranks 4 apart. The second member sends
// out of the node.
TEST(GroupLinks, OfMessagesThatArePassedOnADomainSendsOneForEachGroup) {
  Cluster one_nic = fat_tree_cluster(2, 2, 1);
  one_nic.inter.nics_per_node = 1;
  EXPECT_DOUBLE_EQ(passing(one_nic, {4, 4}), kNic / 4);              // four groups share one NIC
  EXPECT_DOUBLE_EQ(passing(one_nic, {1, 16}), kNic);                 // one group has it
  EXPECT_DOUBLE_EQ(passing(four_nic_cluster(2), {4, 4}), kNic / 2);  // ranks 4 and 5 share a NIC
  EXPECT_DOUBLE_EQ(passing(four_nic_cluster(2), {1, 16}), kNic);     // only rank 7 sends by its NIC
  EXPECT_DOUBLE_EQ(passing(fat_tree_cluster(2, 2, 1), {4, 4}), kNic);
}

Cluster nodes_with_nics(int nodes, int nics) {
  Cluster cluster = fat_tree_cluster(nodes, nodes, 1);
  cluster.inter.nics_per_node = nics;
  return cluster;
}

double ring_of(const Cluster& cluster, GroupShape shape) {
  const GroupLinks links = group_links(tiers_of(cluster), shape);
  return links.across.value() * links.ranks_per_domain;
}

// Groups of three ranks over nodes of eight. Of {6, 7, 8}, rank 7 sends out of the first node. Of
// {15, 16, 17}, rank 15 sends out of the second node, which rank 8 leaves too. All other groups
// stay inside a node.
TEST(GroupLinks, OfGroupsThatStraddleNodesHaveTheNicsThatTheirRanksSendBy) {
  const GroupShape threes{1, 3};
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(3, 4), threes), kNic);
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(3, 2), threes), kNic);
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(3, 1), threes), kNic / 2);
  EXPECT_DOUBLE_EQ(passing(nodes_with_nics(3, 1), threes), kNic / 2);
  // Rank 8 sends two thirds of its data by its NIC, as much as ranks 6 and 7 together send by
  // theirs.
  EXPECT_DOUBLE_EQ(group_links(tiers_of(nodes_with_nics(3, 4)), threes).across_all_to_all.value(),
                   kNic);
  // Groups of every third rank: three rings leave a node. With four NICs, the third NIC carries
  // half of the ring of ranks 1, 4 and 7, which arrives by two NICs, and half of the ring of ranks
  // 2 and 5. With two NICs, each carries half of all rings.
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(6, 4), {3, 16}), kNic);
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(6, 2), {3, 16}), kNic / 1.5);
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(6, 1), {3, 16}), kNic / 3);
}

// A group of twelve ranks fills a node of eight and half of the next, which it shares with another
// group.
TEST(GroupLinks, OfTwelveOverNodesOfEightHaveHalfOfANodesNics) {
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(3, 8), {1, 12}), 4 * kNic);
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(3, 4), {1, 12}), 2 * kNic);
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(3, 1), {1, 12}), kNic / 2);
}

// A group of thirteen ranks has eight in one node and five in the other. Its ring has as many lanes
// as the smaller part has NICs.
TEST(GroupLinks, OfARingThroughUnlikePartsHaveTheNicsOfTheSmallest) {
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(2, 8), {1, 13}), 5 * kNic);
  // 41 trays are three domains of 56, 56 and 52 devices with one NIC each.
  EXPECT_DOUBLE_EQ(ring_of(nvl72_cluster(41), {1, 164}), 52 * kNic);
}

// With seven NICs, ranks 6 and 7 share one; with ten, ranks 3 and 7 have two each.
TEST(GroupLinks, OfNicsThatAreDealtUnevenlyHaveTheFewest) {
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(4, 7), {8, 4}), kNic / 2);
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(4, 7), {1, 32}), 7 * kNic);
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(4, 10), {8, 4}), kNic);
  EXPECT_DOUBLE_EQ(ring_of(nodes_with_nics(4, 10), {1, 32}), 10 * kNic);
}

// Stages of six ranks on nodes of eight, with two tensor-parallel ranks each. The data-parallel
// groups of the first stage lie inside a node; those of the second have one member of three in
// another node.
TEST(GroupLinks, AmongTheRanksOfOneStageAreThoseOfItsOwnGroups) {
  const FabricTiers tiers = tiers_of(nodes_with_nics(3, 8));
  const GroupShape every_second{2, 3};
  const GroupLinks first = group_links(tiers, every_second, {0, 6});
  EXPECT_EQ(first.domains, 1);
  EXPECT_EQ(first.ranks_per_domain, 3);
  EXPECT_DOUBLE_EQ(first.inside.value(), 450e9);
  const GroupLinks second = group_links(tiers, every_second, {6, 6});
  EXPECT_EQ(second.domains, 3);
  EXPECT_DOUBLE_EQ(second.across.value(), kNic);
  EXPECT_EQ(group_links(tiers, every_second, {18, 6}), first);  // ranks 18 to 23: node 2
}

// Stages of fourteen ranks on nodes of eight. In the first stage, ranks 0, 2, 4 and 6 send to ranks
// 8, 10 and 12, so four NICs send and three receive. In the second stage, rank 14 is alone in its
// node.
TEST(GroupLinks, AmongTheRanksOfOneStageHaveTheNicsOfItsOwnParts) {
  const FabricTiers tiers = tiers_of(nodes_with_nics(7, 8));
  const GroupShape every_second{2, 7};
  EXPECT_DOUBLE_EQ(group_links(tiers, every_second, {0, 14}).across.value(), 3 * kNic);
  EXPECT_DOUBLE_EQ(group_links(tiers, every_second, {14, 14}).across.value(), kNic);
  EXPECT_DOUBLE_EQ(group_links(tiers, every_second).across.value(), kNic);
}

// For 3·5,001 ranks, looking at 4,096 ranks does not show how the groups repeat. Groups with fewer
// members that end at the same place of a node have the same NICs.
TEST(GroupLinks, OfManyRanksThatStraddleAreThoseOfFewer) {
  constexpr int kMany = 5001, kFew = 25;  // 5001 mod 8 = 25 mod 8
  const Cluster many = nodes_with_nics(3 * kMany, 4), few = nodes_with_nics(3 * kFew, 4);
  EXPECT_DOUBLE_EQ(ring_of(many, {3, kMany}), ring_of(few, {3, kFew}));
}

TEST(GroupLinks, OfMessagesThatArePassedOnAPcieRootHasAllItsNics) {
  EXPECT_DOUBLE_EQ(passing(pcie_cluster(2, 1), {4, 4}), kNic / 4);
  EXPECT_DOUBLE_EQ(passing(pcie_cluster(2, 1), {1, 16}), 32e9);  // over its own PCIe
  EXPECT_DOUBLE_EQ(passing(pcie_cluster(2, 2), {4, 4}), 2 * kNic / 4);
}

// Eight NICs of 50 GB/s at efficiency 0.85 are faster than PCIe at 32 GB/s. The efficiency of the
// fabric does not apply to PCIe.
TEST(GroupLinks, AFabricsEfficiencyIsNoneOfThePcieLinkToItsNics) {
  Cluster cluster = pcie_cluster(2, 8);
  cluster.inter.efficiency = 0.85;
  const GroupLinks links = group_links(tiers_of(cluster), {8, 2});
  EXPECT_TRUE(links.one_link);
  EXPECT_DOUBLE_EQ(links.across.value(), 32e9);
  EXPECT_DOUBLE_EQ(links.way_out.value(), 32e9);
  EXPECT_DOUBLE_EQ(passing(cluster, {1, 16}), 32e9);
  cluster.inter.nics_per_node = 4;  // 0.85 · 25 GB/s a device
  EXPECT_DOUBLE_EQ(group_links(tiers_of(cluster), {8, 2}).across.value(), 0.85 * 25e9);
}

TEST(GroupLinks, OfMessagesThatArePassedOnTheLastDomainOfALeafSendsOut) {
  const Cluster tree = fat_tree_cluster(16, 4, 4);     // 8 NICs' worth of uplink a leaf
  EXPECT_DOUBLE_EQ(passing(tree, {32, 4}), kNic / 4);  // 32 groups
  EXPECT_DOUBLE_EQ(passing(tree, {8, 16}), kNic);      // 8 groups
  EXPECT_DOUBLE_EQ(passing(tree, {4, 32}), kNic);      // 4 groups, each by a NIC of its own
  // A rail's leaf joins two NICs and has uplinks worth half a NIC; rails 0 to 3 carry one message
  // each.
  EXPECT_DOUBLE_EQ(passing(rail_cluster(8, 2, 4), {4, 16}), kNic / 2);
}

TEST(GroupLinks, TellWhetherTheirMessagesLeaveANarrowLeaf) {
  const FabricTiers tiers = tiers_of(fat_tree_cluster(16, 4, 4));
  EXPECT_EQ(group_links(tiers, {8, 4}).narrow_levels, 0);  // a leaf's four nodes
  EXPECT_EQ(group_links(tiers, {8, 16}).narrow_levels, 1);
  EXPECT_EQ(group_links(tiers_of(fat_tree_cluster(16, 4, 1)), {8, 16}).narrow_levels, 0);
  EXPECT_DOUBLE_EQ(group_links(tiers, {32, 4}).way_out.value(), kNic);  // uplinks have a quarter
}

TEST(GroupLinks, TwoLevelsCountLikeTheRanksTheyName) {
  // Ranks {0, 1} + {0, 16, 32, 48}: two members in each of four nodes, two nodes apart.
  const FabricTiers tiers = tiers_of(fat_tree_cluster(8, 8, 1));
  const GroupLinks links = group_links(tiers, {1, 8, 2, 16});
  EXPECT_EQ(links.ranks_per_domain, 2);
  EXPECT_EQ(links.domains, 4);
}

TEST(GroupLinks, AreInvariantToRenamingInsideADomainAndNotAcrossDomains) {
  // Handbook §12.7: {0, 1}, {0, 2}, {0, 4} are the same group inside a node; {0, 8} is not.
  const FabricTiers tiers = tiers_of(fat_tree_cluster(4, 4, 1));
  const GroupLinks near = group_links(tiers, {1, 2});
  for (const int stride : {2, 4}) {
    const GroupLinks other = group_links(tiers, {stride, 2});
    EXPECT_EQ(other.domains, near.domains);
    EXPECT_EQ(other.inside, near.inside);
  }
  EXPECT_EQ(group_links(tiers, {8, 2}).domains, 2);
}

// ---- flows routed over the graph ----------------------------------------------------------------

// Routes traffic between ranks over the links of the graph. What leaves a domain is spread evenly
// over its NICs and goes to the NIC at the same place in the other domain, through one leaf if both
// NICs have the same leaf.
class Router {
 public:
  explicit Router(const Cluster& cluster) : graph_(make_topology(cluster)) {
    const int domain = tiers_of(cluster).tiers.front().ranks;
    const int domains = cluster.devices() / domain;
    nics_.resize(static_cast<std::size_t>(domains));
    for (const auto vertex : boost::make_iterator_range(vertices(graph_))) {
      leaf_.push_back(above(vertex, VertexKind::leaf));
      spine_.push_back(above(vertex, VertexKind::spine));
      if (graph_[vertex].kind != VertexKind::nic) continue;
      const int first = graph_[vertex].node * cluster.devices_per_node;
      nics_[static_cast<std::size_t>(first / domain)].push_back(vertex);
    }
    devices_per_domain_ = domain;
    sent_.resize(leaf_.size());
    received_.resize(leaf_.size());
  }

  void send(int from, int to, double bytes) {
    const auto& out = nics_[static_cast<std::size_t>(from / devices_per_domain_)];
    const auto& in = nics_[static_cast<std::size_t>(to / devices_per_domain_)];
    if (&out == &in) return;
    for (std::size_t i = 0; i < out.size(); ++i) {
      climb(out[i], in[i], bytes / static_cast<double>(out.size()));
    }
  }

  // Sends by the sender's own NIC; in a rail-optimised fabric, by the NIC of the receiver's rail.
  void send_own(int from, int to, double bytes, bool rails) {
    const auto& out = nics_[static_cast<std::size_t>(from / devices_per_domain_)];
    const auto& in = nics_[static_cast<std::size_t>(to / devices_per_domain_)];
    if (&out == &in) return;
    const auto place = [&](int rank) {
      return static_cast<std::size_t>(rank % devices_per_domain_) * out.size() /
             static_cast<std::size_t>(devices_per_domain_);
    };
    climb(out[place(rails ? to : from)], in[place(to)], bytes);
  }

  // The time at which the fullest link is done.
  double time() const {
    double longest = 0;
    for (const auto vertex : boost::make_iterator_range(vertices(graph_))) {
      const double bytes = std::max(sent_[vertex], received_[vertex]);
      if (bytes == 0) continue;
      const VertexId upper = leaf_[vertex] != vertex ? leaf_[vertex] : spine_[vertex];
      const auto edge = boost::edge(vertex, upper, graph_).first;
      longest = std::max(longest, bytes / graph_[edge].bandwidth.value());
    }
    return longest;
  }

 private:
  using VertexId = TopologyGraph::vertex_descriptor;

  VertexId above(VertexId vertex, VertexKind kind) const {
    for (const auto other : boost::make_iterator_range(adjacent_vertices(vertex, graph_))) {
      if (graph_[other].kind == kind) return other;
    }
    return vertex;
  }

  void climb(VertexId from, VertexId to, double bytes) {
    const VertexId up = leaf_[from];
    const VertexId down = leaf_[to];
    sent_[from] += bytes;
    received_[to] += bytes;
    if (up == down) return;
    sent_[up] += bytes;
    received_[down] += bytes;
  }

  TopologyGraph graph_;
  std::vector<VertexId> leaf_, spine_;       // above each vertex
  std::vector<std::vector<VertexId>> nics_;  // of each domain
  int devices_per_domain_ = 0;
  std::vector<double> sent_, received_;  // bytes on the link from each vertex to what is above it
};

// All groups of `size` ranks, `stride` apart, that partition the cluster.
std::vector<std::vector<int>> sibling_groups(int devices, int stride, int size) {
  std::vector<std::vector<int>> groups;
  for (int block = 0; block < devices; block += stride * size) {
    for (int offset = 0; offset < stride; ++offset) {
      groups.emplace_back();
      for (int i = 0; i < size; ++i) groups.back().push_back(block + offset + i * stride);
    }
  }
  return groups;
}

struct RoutedCase {
  const char* name;
  Cluster cluster;
  int stride, size;
};

class GroupLinksOf : public testing::TestWithParam<RoutedCase> {};

TEST_P(GroupLinksOf, RingTakesAsLongAsItsFlowsOverTheGraph) {
  const auto& [name, cluster, stride, size] = GetParam();
  Router router(cluster);
  for (const auto& group : sibling_groups(cluster.devices(), stride, size)) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      router.send(group[i], group[(i + 1) % group.size()], 1e9);
    }
  }
  const GroupLinks links = group_links(tiers_of(cluster), {stride, size});
  const double modelled = 1e9 / (links.across.value() * links.ranks_per_domain);
  EXPECT_NEAR(modelled, router.time(), 1e-9 * router.time());
}

TEST_P(GroupLinksOf, PassingOnTakesAsLongAsItsFlowsOverTheGraph) {
  const auto& [name, cluster, stride, size] = GetParam();
  Router router(cluster);
  for (const auto& group : sibling_groups(cluster.devices(), stride, size)) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      router.send_own(group[i], group[(i + 1) % group.size()], 1e9,
                      cluster.inter.kind == InterNodeKind::rail);
    }
  }
  const double modelled = 1e9 / passing(cluster, {stride, size});
  EXPECT_NEAR(modelled, router.time(), 1e-9 * router.time());
}

TEST_P(GroupLinksOf, AllToAllTakesAsLongAsItsFlowsOverTheGraph) {
  const auto& [name, cluster, stride, size] = GetParam();
  Router router(cluster);
  for (const auto& group : sibling_groups(cluster.devices(), stride, size)) {
    for (const int from : group) {
      for (const int to : group) router.send(from, to, 1e9 / size);
    }
  }
  const GroupLinks links = group_links(tiers_of(cluster), {stride, size});
  const double leaving = 1e9 * (size - links.ranks_per_domain) / size;
  EXPECT_NEAR(leaving / links.across_all_to_all.value(), router.time(), 1e-9 * router.time());
}

// Seconds for one byte per member in the rounds of a doubling algorithm: every member sends to the
// one 1, 2, 4, … domains further on.
double doubling_over_the_graph(const RoutedCase& routed, int members) {
  double sum = 0;
  for (int far = members; far < routed.size; far *= 2) {
    Router router(routed.cluster);
    for (const auto& group : sibling_groups(routed.cluster.devices(), routed.stride, routed.size)) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        router.send(group[i], group[(i + static_cast<std::size_t>(far)) % group.size()], 1);
      }
    }
    sum += router.time();
  }
  return sum;
}

double doubling_of(const GroupLinks& links) {
  return std::ceil(std::log2(links.domains)) * links.crowding.doubling /
         links.across_all_to_all.value();
}

TEST_P(GroupLinksOf, DoublingTakesAsLongAsItsFlowsOverTheGraph) {
  const GroupLinks links =
      group_links(tiers_of(GetParam().cluster), {GetParam().stride, GetParam().size});
  const double routed = doubling_over_the_graph(GetParam(), links.ranks_per_domain);
  EXPECT_NEAR(doubling_of(links), routed, 1e-9 * routed);
}

// Groups that straddle leaves have the rates that routing every flow gives.
TEST(GroupLinks, OfGroupsThatStraddleLeavesHaveTheirRingsAndAllToAllsOverTheGraph) {
  for (const RoutedCase& straddling :
       {RoutedCase{"three_over_four", fat_tree_cluster(12, 4, 16), 8, 3},
        RoutedCase{"six_over_four", fat_tree_cluster(12, 4, 16), 8, 6},
        RoutedCase{"three_over_four_rails", rail_cluster(12, 4, 16), 8, 3},
        RoutedCase{"whole_nodes", fat_tree_cluster(12, 4, 16), 1, 48},
        RoutedCase{"far_apart", fat_tree_cluster(12, 4, 16), 24, 4},
        RoutedCase{"part_filled", fat_tree_cluster(10, 4, 16), 8, 5}}) {
    const auto& [name, cluster, stride, size] = straddling;
    Router ring(cluster), all_to_all(cluster);
    for (const auto& group : sibling_groups(cluster.devices(), stride, size)) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        ring.send(group[i], group[(i + 1) % group.size()], 1e9);
        for (const int to : group) all_to_all.send(group[i], to, 1e9 / size);
      }
    }
    const GroupLinks links = group_links(tiers_of(cluster), {stride, size});
    EXPECT_NEAR(1e9 / (links.across.value() * links.ranks_per_domain), ring.time(),
                1e-9 * ring.time())
        << name;
    const double leaving = 1e9 * (size - links.ranks_per_domain) / size;
    EXPECT_NEAR(leaving / links.across_all_to_all.value(), all_to_all.time(),
                1e-9 * all_to_all.time())
        << name;
  }
}

// 63 nodes under leaves of 32, with uplinks of a quarter of the NICs' sum. The rings of all eight
// sibling groups cross the leaves: the 32·8/4 NICs' worth of uplinks are more than the eight NICs
// they need. An all-to-all sends 32·31 of its parts over the uplinks; with 64 nodes, 32·32.
TEST(GroupLinks, OfOneNodeFewerAreThoseOfFullLeaves) {
  const GroupLinks full = group_links(tiers_of(rail_cluster(64, 32, 4)), {8, 64});
  const GroupLinks fewer = group_links(tiers_of(rail_cluster(63, 32, 4)), {8, 63});
  EXPECT_DOUBLE_EQ(full.across.value(), kNic);
  EXPECT_DOUBLE_EQ(fewer.across.value(), kNic);
  EXPECT_DOUBLE_EQ(full.across_all_to_all.value(), kNic / 4 * 63 / 32);
  EXPECT_DOUBLE_EQ(fewer.across_all_to_all.value(), kNic / 4 * 62 / 31);
  const GroupLinks more = group_links(tiers_of(rail_cluster(65, 32, 4)), {8, 65});
  EXPECT_DOUBLE_EQ(more.across.value(), kNic);
}

// Groups of six nodes over leaves of four, and of four over leaves of six: some groups straddle two
// leaves.
TEST(GroupLinks, OfGroupsThatStraddleLeavesAreNeverTooFast) {
  for (const RoutedCase& straddling :
       {RoutedCase{"six_over_four", fat_tree_cluster(12, 4, 4), 8, 6},
        RoutedCase{"four_over_six", fat_tree_cluster(12, 6, 4), 8, 4},
        RoutedCase{"whole_nodes", fat_tree_cluster(12, 4, 4), 1, 48}}) {
    const GroupLinks links =
        group_links(tiers_of(straddling.cluster), {straddling.stride, straddling.size});
    EXPECT_GE(doubling_of(links) * (1 + 1e-12),
              doubling_over_the_graph(straddling, links.ranks_per_domain))
        << straddling.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Groups, GroupLinksOf,
    testing::Values(RoutedCase{"whole_fat_tree", fat_tree_cluster(8, 2, 1), 1, 64},
                    RoutedCase{"data_groups", fat_tree_cluster(8, 2, 1), 8, 8},
                    RoutedCase{"oversubscribed_whole", fat_tree_cluster(8, 2, 4), 1, 64},
                    RoutedCase{"oversubscribed_data", fat_tree_cluster(8, 2, 4), 8, 8},
                    RoutedCase{"oversubscribed_far", fat_tree_cluster(8, 2, 4), 16, 4},
                    RoutedCase{"oversubscribed_two_a_node", fat_tree_cluster(8, 4, 3), 4, 16},
                    RoutedCase{"part_filled_leaf", fat_tree_cluster(7, 4, 4), 8, 7},
                    RoutedCase{"part_filled_leaf_on_rails", rail_cluster(7, 4, 4), 8, 7},
                    RoutedCase{"heavily_oversubscribed", fat_tree_cluster(8, 2, 16), 4, 16},
                    RoutedCase{"expert_groups", fat_tree_cluster(8, 4, 2), 1, 16},
                    RoutedCase{"rail_data", rail_cluster(8, 2, 4), 8, 8},
                    RoutedCase{"rail_whole", rail_cluster(8, 2, 4), 1, 64},
                    RoutedCase{"rail_two_a_node", rail_cluster(8, 2, 4), 4, 16},
                    RoutedCase{"four_nics", four_nic_cluster(4), 2, 16},
                    RoutedCase{"four_nics_two_a_node", four_nic_cluster(4), 4, 8},
                    RoutedCase{"four_nics_whole", four_nic_cluster(4), 1, 32},
                    RoutedCase{"nvl72", nvl72_cluster(18 * 8), 8, 72}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace trainyard
