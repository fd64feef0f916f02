// Compares the tiers with a second computation: the maximum flow (Boost's Edmonds–Karp) over the
// same graph, from all devices of a subtree at once to all other devices.
#include <gtest/gtest.h>

#include <array>
#include <boost/graph/edmonds_karp_max_flow.hpp>
#include <cmath>
#include <random>
#include <string>

#include "model/cluster/topology_graph.h"
#include "tests/model/cluster/clusters.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, long,
        boost::property<boost::edge_residual_capacity_t, long,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

void connect(FlowGraph& flow, std::size_t from, std::size_t to, long there, long back) {
  const auto a = add_edge(from, to, flow).first;
  const auto b = add_edge(to, from, flow).first;
  put(boost::edge_capacity, flow, a, there);
  put(boost::edge_capacity, flow, b, back);
  put(boost::edge_reverse, flow, a, b);
  put(boost::edge_reverse, flow, b, a);
}

// Bytes a second that the ranks [first, last) can send to all others together.
double maximum_flow_out(const TopologyGraph& graph, int devices, int first, int last) {
  const std::size_t source = num_vertices(graph);
  const std::size_t sink = source + 1;
  FlowGraph flow(sink + 1);
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const long rate = std::lround(graph[edge].bandwidth.value());
    connect(flow, boost::source(edge, graph), boost::target(edge, graph), rate, rate);
  }
  constexpr long kUnlimited = 1L << 50;
  for (int rank = 0; rank < devices; ++rank) {
    const auto device = static_cast<std::size_t>(rank);
    const bool inside = first <= rank && rank < last;
    connect(flow, inside ? source : device, inside ? device : sink, kUnlimited, 0);
  }
  return static_cast<double>(boost::edmonds_karp_max_flow(flow, source, sink));
}

struct NamedCluster {
  const char* name;
  Cluster cluster;
  std::vector<int> tier_ranks;
};

class FabricTiersOf : public testing::TestWithParam<NamedCluster> {};

TEST_P(FabricTiersOf, WayOutIsTheMaximumFlowOutOfTheSubtree) {
  const auto& [name, cluster, ranks] = GetParam();
  const TopologyGraph graph = make_topology(cluster);
  const FabricTiers tiers = fabric_tiers(cluster, graph);
  ASSERT_EQ(tiers.tiers.size(), ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Tier& tier = tiers.tiers[i];
    EXPECT_EQ(tier.ranks, ranks[i]);
    // A subtree in the middle, because the first and the last could be special.
    const double flow = maximum_flow_out(graph, cluster.devices(), tier.ranks, 2 * tier.ranks);
    EXPECT_NEAR(tier.way_out.value() * tier.ranks, flow, 1e-6 * flow) << name << ", tier " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, FabricTiersOf,
    testing::Values(NamedCluster{"fat_tree", fat_tree_cluster(6, 2, 1), {8, 16}},
                    NamedCluster{"oversubscribed", fat_tree_cluster(8, 2, 4), {8, 16}},
                    NamedCluster{"rail", rail_cluster(6, 2, 1), {8, 16}},
                    NamedCluster{"rail_oversubscribed", rail_cluster(6, 2, 3), {8, 16}},
                    NamedCluster{"one_leaf", fat_tree_cluster(4, 4, 2), {8}},
                    NamedCluster{"four_nics", four_nic_cluster(3), {8}},
                    NamedCluster{"nvl72", nvl72_cluster(18 * 6), {72, 144}},
                    NamedCluster{"pcie_few_nics", pcie_cluster(3, 2), {8}},
                    NamedCluster{"pcie_many_nics", pcie_cluster(3, 16), {8}},
                    NamedCluster{"mesh", mesh_cluster(3), {8}}),
    [](const auto& instance) { return instance.param.name; });

void expect_same(const FabricTiers& a, const FabricTiers& b, const std::string& of) {
  EXPECT_EQ(a.inside.value(), b.inside.value()) << of;
  EXPECT_EQ(a.inside_pair.value(), b.inside_pair.value()) << of;
  EXPECT_EQ(a.switched, b.switched) << of;
  ASSERT_EQ(a.tiers.size(), b.tiers.size()) << of;
  for (std::size_t i = 0; i < a.tiers.size(); ++i) {
    EXPECT_EQ(a.tiers[i].ranks, b.tiers[i].ranks) << of;
    EXPECT_EQ(a.tiers[i].way_out.value(), b.tiers[i].way_out.value()) << of;
  }
}

Cluster random_tree(std::mt19937& random) {
  const auto one_of = [&](std::vector<int> all) { return all[random() % all.size()]; };
  Cluster cluster = fat_tree_cluster(static_cast<int>(1 + random() % 90), one_of({1, 2, 5, 8, 32}),
                                     one_of({1, 2, 3}));
  cluster.devices_per_node = one_of({1, 2, 4, 8, 16});
  cluster.nvlink_domain = cluster.devices_per_node * one_of({1, 1, 2, 9, 18});
  cluster.inter.kind = one_of({0, 1}) == 0 ? InterNodeKind::fat_tree : InterNodeKind::rail;
  cluster.inter.nics_per_node = one_of({1, 2, 4, 8, 16});
  cluster.inter.bandwidth = BytesPerSecond(12.5e9 / 3 * one_of({1, 2, 7}));
  cluster.inter.efficiency = 0.85;
  cluster.intra.kind = std::array{IntraNodeKind::nvswitch, IntraNodeKind::nvlink_mesh,
                                  IntraNodeKind::pcie}[random() % 3];
  return cluster;
}

// Equal bit for bit.
TEST(FabricTiers, OfTreesAreThoseOfTheirGraph) {
  std::mt19937 random(7);
  int partial = 0;
  for (int i = 0; i < random_cases(1000); ++i) {
    const Cluster cluster = random_tree(random);
    const FabricTiers of_graph = fabric_tiers(cluster, make_topology(cluster));
    const std::string of = "case " + std::to_string(i);
    ASSERT_NO_FATAL_FAILURE(expect_same(fabric_tiers(cluster), of_graph, of));
    partial += of_graph.tiers.size() == 2 && cluster.devices() % of_graph.tiers[1].ranks != 0;
  }
  EXPECT_GT(partial, random_cases(1000) / 20) << "trees whose last row of leaves is not full";
}

// The graph of this cluster would have two thousand million vertices.
TEST(FabricTiers, OfManyNodesAreThoseOfFew) {
  const Cluster many = rail_cluster(32 << 22, 32, 3), few = rail_cluster(64, 32, 3);
  expect_same(fabric_tiers(many), fabric_tiers(few, make_topology(few)), "2^27 nodes");
  EXPECT_EQ(fabric_tiers(many).devices, 1 << 30);
}

// A leaf for four nodes has uplinks for four: a quarter of its 32 NICs' sum, 400 GB/s. This holds
// even where only the ninth node hangs on it.
TEST(FabricTiers, ALeafThatIsNotFullHasAllItsUplinks) {
  for (const Cluster& cluster : {fat_tree_cluster(9, 4, 4), rail_cluster(9, 4, 4)}) {
    EXPECT_NEAR(maximum_flow_out(make_topology(cluster), 72, 64, 72), 400e9, 1e-6 * 400e9);
    EXPECT_DOUBLE_EQ(tiers_of(cluster).tiers[1].way_out.value(), 12.5e9);
  }
}

TEST(FabricTiers, OneDomainHasNone) {
  EXPECT_TRUE(tiers_of(fat_tree_cluster(1, 32, 1)).tiers.empty());
  EXPECT_TRUE(tiers_of(nvl72_cluster(18)).tiers.empty());
}

TEST(FabricTiers, OversubscriptionDividesWhatIsAboveTheLeafOnly) {
  const FabricTiers tiers = tiers_of(fat_tree_cluster(8, 2, 4));
  EXPECT_DOUBLE_EQ(tiers.tiers[0].way_out.value(), 50e9);
  EXPECT_DOUBLE_EQ(tiers.tiers[1].way_out.value(), 12.5e9);
}

TEST(FabricTiers, EfficiencyIsTakenOffTheNics) {
  Cluster cluster = fat_tree_cluster(2, 2, 1);
  cluster.inter.efficiency = 0.85;
  EXPECT_DOUBLE_EQ(tiers_of(cluster).tiers[0].way_out.value(), 0.85 * 50e9);
}

TEST(FabricTiers, InsideIsTheDevicesLinks) {
  const FabricTiers nvswitch = tiers_of(fat_tree_cluster(2, 2, 1));
  EXPECT_DOUBLE_EQ(nvswitch.inside.value(), 450e9);
  EXPECT_DOUBLE_EQ(nvswitch.inside_pair.value(), 450e9);
  EXPECT_TRUE(nvswitch.switched);
  const FabricTiers mesh = tiers_of(mesh_cluster(2));
  EXPECT_NEAR(mesh.inside.value(), 140e9, 1);
  EXPECT_NEAR(mesh.inside_pair.value(), 20e9, 1);
  EXPECT_FALSE(mesh.switched);
  EXPECT_FALSE(tiers_of(pcie_cluster(2, 2)).switched);
}

}  // namespace
}  // namespace trainyard
