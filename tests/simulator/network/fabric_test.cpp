// What the fabric cannot simulate is refused with a sentence before anything runs.
#include "simulator/network/fabric.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "model/cluster/topology_graph.h"
#include "model/cost/messages/transfer_rounds.h"
#include "tests/model/cluster/clusters.h"
#include "tests/simulator/call_graph.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

TopologyGraph::vertex_descriptor vertex_of(const TopologyGraph& graph, VertexKind kind, int index) {
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) {
    if (graph[vertex].kind == kind && graph[vertex].index == index) return vertex;
  }
  ADD_FAILURE() << "no such vertex";
  return 0;
}

std::string message_of(const Expected<Timeline>& timeline) {
  return timeline ? "none" : timeline.error().where + ": " + timeline.error().message;
}

TEST(Fabric, NamesTheRankThatCannotBeReached) {
  const Cluster cluster = fat_tree_cluster(2, 2, 1);
  TopologyGraph graph = make_topology(cluster);
  clear_vertex(vertex_of(graph, VertexKind::nic, 11), graph);
  const auto fabric = Fabric::make(cluster, graph);
  ASSERT_FALSE(fabric);
  EXPECT_EQ(fabric.error().message, "rank 11 cannot be reached from rank 0");
}

TEST(Fabric, NamesTheFirstRankOfALeafThatIsCutOff) {
  const Cluster cluster = fat_tree_cluster(4, 2, 1);
  TopologyGraph graph = make_topology(cluster);
  remove_edge(vertex_of(graph, VertexKind::leaf, 1), vertex_of(graph, VertexKind::spine, 0), graph);
  EXPECT_EQ(Fabric::make(cluster, graph).error().message, "rank 16 cannot be reached from rank 0");
}

TEST(Fabric, RefusesALinkWithoutBandwidth) {
  Cluster cluster = fat_tree_cluster(2, 2, 1);
  cluster.inter.bandwidth = BytesPerSecond(0);
  EXPECT_NE(Fabric::make(cluster, make_topology(cluster)).error().message.find("no bandwidth"),
            std::string::npos);
}

TEST(Fabric, FindsWhatMembersHaveBetweenThem) {
  const Cluster cluster = fat_tree_cluster(4, 2, 1);
  const Fabric fabric = Fabric::make(cluster, make_topology(cluster)).value();
  const auto links = [&](const TaskGroup& members) { return fabric.links_of(members); };
  EXPECT_EQ(links({0, 1, 2, 3}).ranks_per_domain, 4);
  EXPECT_EQ(links({0, 8, 16}).ranks_per_domain, 1);
  EXPECT_EQ(links({0, 1, 8, 9}).ranks_per_domain, 2);
  EXPECT_EQ(links({0, 1, 2, 3, 8, 9}).ranks_per_domain, 2);  // two runs in the first node
  EXPECT_EQ(links({0, 1, 2, 8}).ranks_per_domain, 1);
  EXPECT_EQ(links({0, 1, 8, 9}).domains, 2);
}

// kSome has members in nodes 0, 1 and 2; kLikeThem has them in the same places of nodes 3, 0 and 1.
const TaskGroup kSome = {0, 3, 9, 10, 16, 23};
const TaskGroup kLikeThem = {24, 27, 1, 2, 8, 15};

std::vector<LinkUse> ways(Fabric& fabric, const TaskGroup& group, Way way) {
  const TransferRound round{.way = way, .overhead = 1.5, .transfers = {}};
  const int ranks_per_domain = fabric.links_of(group).ranks_per_domain;
  std::vector<LinkUse> uses;
  for (int from = 0; from < static_cast<int>(group.size()); ++from) {
    for (int to = 0; to < static_cast<int>(group.size()); ++to) {
      if (from == to) continue;
      fabric.append_way(group, ranks_per_domain, round, {from, to, Bytes(1)}, uses);
    }
  }
  return uses;
}

// Second computation: the routes of the other group, transfer by transfer.
TEST(Fabric, KnowsTheLinksOfGroupsInLikePlaces) {
  for (const Cluster& cluster : {fat_tree_cluster(4, 2, 1), rail_cluster(4, 2, 1),
                                 four_nic_cluster(4), pcie_cluster(4, 2), mesh_cluster(4)}) {
    for (const Way way : {Way::own_links, Way::all_links}) {
      Fabric fabric = Fabric::make(cluster, make_topology(cluster)).value();
      const std::vector<LinkUse> known = ways(fabric, kSome, way);
      const std::vector<LinkUse> expected = ways(fabric, kLikeThem, way);
      ASSERT_FALSE(known.empty());
      std::vector<LinkUse> found;
      ASSERT_TRUE(fabric.append_alike(kSome, known, kLikeThem, found));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].link, expected[i].link);
        EXPECT_EQ(found[i].share, expected[i].share);
      }
    }
  }
}

// NCCL's channels: four rings run side by side, and each enters and leaves the nodes at another one
// of four members, so all members' links carry the same.
TEST(Fabric, ARingLoadsTheLinksOfAllItsMembersAlike) {
  for (const Cluster& cluster : {fat_tree_cluster(2, 2, 1), mesh_cluster(2), pcie_cluster(2, 8)}) {
    Fabric fabric = Fabric::make(cluster, make_topology(cluster), FabricLinks::all).value();
    const TaskGroup members = {0, 2, 4, 6, 8, 10, 12, 14};
    const GroupLinks links = fabric.links_of(members);
    const TransferRound round = ring_round(links, 1, Bytes(1));
    std::map<std::int32_t, double> loads;
    std::vector<LinkUse> uses;
    for (const Transfer& transfer : round.transfers) {
      fabric.append_way(members, links.ranks_per_domain, round, transfer, uses);
    }
    for (const LinkUse& use : uses) loads[use.link] += use.share;
    std::map<double, std::set<double>> of_capacity;
    for (const auto& [link, load] : loads) {
      of_capacity[fabric.capacities()[static_cast<std::size_t>(link)].value()].insert(load);
    }
    const double inside = cluster.intra.kind == IntraNodeKind::nvlink_mesh
                              ? cluster.intra.bandwidth.value() / 7
                              : cluster.intra.bandwidth.value();
    ASSERT_EQ(of_capacity[inside].size(), 1U);
    EXPECT_DOUBLE_EQ(*of_capacity[inside].begin(),
                     cluster.intra.kind == IntraNodeKind::nvlink_mesh ? 1.0 / 3 : 1.0);
  }
}

// Routes go up from the sender and down to the receiver, because the NICs of all rails are below
// one root.
TEST(Fabric, UnderPcieNoRailIsChanged) {
  Cluster cluster = pcie_cluster(2, 8);
  cluster.inter.kind = InterNodeKind::rail;
  Fabric fabric = Fabric::make(cluster, make_topology(cluster), FabricLinks::all).value();
  const TransferRound round{.way = Way::own_links};
  std::vector<LinkUse> uses;
  fabric.append_way(TaskGroup{0, 9}, 1, round, {0, 1, Bytes(1)}, uses);
  std::set<std::int32_t> over_pcie;
  for (const LinkUse& use : uses) {
    const BytesPerSecond capacity = fabric.capacities()[static_cast<std::size_t>(use.link)];
    if (capacity == cluster.intra.bandwidth) over_pcie.insert(use.link);
  }
  EXPECT_EQ(over_pcie.size(), 2U);
}

TEST(Fabric, DoesNotKnowTheLinksOfGroupsInUnlikePlaces) {
  const Cluster cluster = fat_tree_cluster(4, 2, 1);
  Fabric fabric = Fabric::make(cluster, make_topology(cluster)).value();
  const std::vector<LinkUse> known = ways(fabric, kSome, Way::own_links);
  std::vector<LinkUse> found;
  const auto knows = [&](const TaskGroup& other) {
    return fabric.append_alike(kSome, known, other, found);
  };
  EXPECT_FALSE(knows({24, 27, 1, 2, 8}));
  EXPECT_FALSE(knows({24, 27, 1, 2, 8, 14}));   // another place
  EXPECT_FALSE(knows({24, 27, 1, 10, 8, 15}));  // of two nodes what was of one
  EXPECT_FALSE(knows({24, 27, 1, 2, 0, 7}));    // of one node what was of two
  EXPECT_TRUE(found.empty());
}

TEST(Fabric, DoesNotKnowTheLinksOfGroupsWhereNodesOrTheWaysBetweenThemAreUnlike) {
  const auto knows = [](const Cluster& cluster, const TopologyGraph& topology) {
    Fabric fabric = Fabric::make(cluster, topology).value();
    std::vector<LinkUse> found;
    return fabric.append_alike(kSome, ways(fabric, kSome, Way::own_links), kLikeThem, found);
  };
  const Cluster narrow = fat_tree_cluster(4, 2, 2);
  EXPECT_FALSE(knows(narrow, make_topology(narrow)));
  const Cluster whole = fat_tree_cluster(4, 2, 1);
  TopologyGraph slow = make_topology(whole);
  degrade(slow, {.of = {VertexKind::nic, 27}, .rate = 0.5});
  EXPECT_FALSE(knows(whole, slow));
}

TEST(Fabric, NamesTheRankThatABrokenTorusCannotReach) {
  const Cluster cluster = torus_cluster({3}, BytesPerSecond(50e9));
  TopologyGraph graph = make_topology(cluster);
  remove_edge(vertex_of(graph, VertexKind::leaf, 1), vertex_of(graph, VertexKind::leaf, 2), graph);
  EXPECT_TRUE(Fabric::make(cluster, graph));  // the other way round is left
  remove_edge(vertex_of(graph, VertexKind::leaf, 0), vertex_of(graph, VertexKind::leaf, 2), graph);
  EXPECT_EQ(Fabric::make(cluster, graph).error().message, "rank 16 cannot be reached from rank 0");
}

TEST(Network, RefusesMoreRanksThanDevices) {
  const Cluster cluster = fat_tree_cluster(1, 1, 1);
  const TopologyGraph topology = make_topology(cluster);
  const TaskGraph graph = call_graph(9, {{0, 8}}, {named_call(send, "direct", Bytes(1))});
  EXPECT_EQ(message_of(simulate(graph, {.network = NetworkModel{cluster, topology}})),
            "topology: found 9 ranks, allowed up to 8, its devices");
}

TEST(Network, NamesTheAlgorithmThatDoesNotApply) {
  const Cluster cluster = fat_tree_cluster(1, 1, 1);
  const TopologyGraph topology = make_topology(cluster);
  const TaskGraph graph =
      call_graph(8, {{0, 1, 2, 3}}, {named_call(all_reduce, "hierarchical", Bytes(1))});
  EXPECT_EQ(message_of(simulate(graph, {.network = NetworkModel{cluster, topology}})),
            "group 0: algorithm hierarchical does not apply to 1 domains of 4 ranks");
}

TEST(Network, TakesNoTimeForAGroupOfOne) {
  const Cluster cluster = fat_tree_cluster(1, 1, 1);
  const TaskGraph graph = call_graph(1, {{0}}, {named_call(all_reduce, "ring", Bytes(1e9))});
  for (const NetworkGrain grain : {NetworkGrain::collective, NetworkGrain::message}) {
    EXPECT_EQ(seconds_taken(graph, cluster, make_topology(cluster), grain), 0);
  }
}

}  // namespace
}  // namespace trainyard
