#include "model/cluster/topology.h"

#include <gtest/gtest.h>

#include <boost/graph/connected_components.hpp>
#include <map>

#include "tests/model/cluster/clusters.h"

namespace trainyard {
namespace {

std::map<VertexKind, int> census(const TopologyGraph& graph) {
  std::map<VertexKind, int> count;
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) ++count[graph[vertex].kind];
  return count;
}

// The leaf that a NIC hangs on.
TopologyGraph::vertex_descriptor leaf_of(const TopologyGraph& graph,
                                         TopologyGraph::vertex_descriptor nic) {
  for (const auto other : boost::make_iterator_range(adjacent_vertices(nic, graph))) {
    if (graph[other].kind == VertexKind::leaf) return other;
  }
  return nic;
}

TEST(Topology, CountsEveryPartOfAFatTree) {
  // 6 nodes of 8 devices and 8 NICs, 2 nodes a leaf.
  auto parts = census(make_topology(fat_tree_cluster(6, 2, 1)));
  EXPECT_EQ(parts[VertexKind::device], 48);
  EXPECT_EQ(parts[VertexKind::nvlink_switch], 6);
  EXPECT_EQ(parts[VertexKind::nic], 48);
  EXPECT_EQ(parts[VertexKind::leaf], 3);
  EXPECT_EQ(parts[VertexKind::spine], 1);
}

TEST(Topology, PutsTheDevicesFirstInRankOrder) {
  const TopologyGraph graph = make_topology(fat_tree_cluster(3, 2, 1));
  for (int rank = 0; rank < 24; ++rank) {
    const Vertex& vertex = graph[static_cast<std::size_t>(rank)];
    EXPECT_EQ(vertex.kind, VertexKind::device);
    EXPECT_EQ(vertex.index, rank);
    EXPECT_EQ(vertex.node, rank / 8);
  }
}

TEST(Topology, NeedsNoSpineBelowOneLeaf) {
  auto parts = census(make_topology(fat_tree_cluster(4, 4, 3)));
  EXPECT_EQ(parts[VertexKind::leaf], 1);
  EXPECT_EQ(parts[VertexKind::spine], 0);
}

TEST(Topology, ARailFabricHasSameIndexNicsOfAPodOnOneLeaf) {
  const TopologyGraph graph = make_topology(rail_cluster(4, 2, 1));
  EXPECT_EQ(census(graph)[VertexKind::leaf], 16);  // 8 rails in each of 2 pods
  std::map<TopologyGraph::vertex_descriptor, std::vector<int>> below;
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) {
    if (graph[vertex].kind == VertexKind::nic)
      below[leaf_of(graph, vertex)].push_back(graph[vertex].index);
  }
  for (const auto& [leaf, nics] : below) {
    ASSERT_EQ(nics.size(), 2u);
    EXPECT_EQ(nics[0] % 8, nics[1] % 8);          // the same rail
    EXPECT_EQ(nics[0] / 8 / 2, nics[1] / 8 / 2);  // the same pod
  }
}

TEST(Topology, AnNvlinkDomainSpansTrays) {
  // 36 trays of 4: two domains of 72.
  auto parts = census(make_topology(nvl72_cluster(36)));
  EXPECT_EQ(parts[VertexKind::nvlink_switch], 2);
  EXPECT_EQ(parts[VertexKind::nic], 144);
}

TEST(Topology, FillsNvlinkDomainsByEqualSegments) {
  // 64 trays: four segments of 16 trays (64 devices) rather than 18 + 18 + 18 + 10.
  EXPECT_EQ(tiers_of(nvl72_cluster(64)).tiers.front().ranks, 64);
  EXPECT_EQ(tiers_of(nvl72_cluster(36)).tiers.front().ranks, 72);
  // 19 trays divide into nothing better than single ones: as many as fit, then the rest.
  EXPECT_EQ(tiers_of(nvl72_cluster(19)).tiers.front().ranks, 72);
}

TEST(Topology, AMeshLinksEveryPairOfANode) {
  const TopologyGraph graph = make_topology(mesh_cluster(1));
  int links = 0;
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    if (graph[target(edge, graph)].kind == VertexKind::device &&
        graph[source(edge, graph)].kind == VertexKind::device) {
      ++links;
      EXPECT_DOUBLE_EQ(graph[edge].bandwidth.value(), 140e9 / 7);
    }
  }
  EXPECT_EQ(links, 8 * 7 / 2);
}

TEST(Topology, IsConnectedWheneverThereIsAFabric) {
  for (const Cluster& cluster :
       {fat_tree_cluster(6, 2, 4), rail_cluster(5, 2, 1), four_nic_cluster(3), nvl72_cluster(40),
        pcie_cluster(3, 2), mesh_cluster(3), pcie_cluster(2, 16)}) {
    const TopologyGraph graph = make_topology(cluster);
    std::vector<int> component(num_vertices(graph));
    EXPECT_EQ(boost::connected_components(graph, component.data()), 1);
  }
}

}  // namespace
}  // namespace trainyard
