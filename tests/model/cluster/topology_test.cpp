#include <gtest/gtest.h>

#include <boost/graph/connected_components.hpp>
#include <map>

#include "model/cluster/fabric_shape.h"
#include "model/cluster/topology_graph.h"
#include "tests/model/cluster/clusters.h"

namespace trainyard {
namespace {

std::map<VertexKind, int> census(const TopologyGraph& graph) {
  std::map<VertexKind, int> count;
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) ++count[graph[vertex].kind];
  return count;
}

// The leaf to which a NIC is connected.
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
  // 64 trays make four domains of 16 trays (64 devices) rather than 18 + 18 + 18 + 10.
  EXPECT_EQ(tiers_of(nvl72_cluster(64)).tiers.front().ranks, 64);
  EXPECT_EQ(tiers_of(nvl72_cluster(36)).tiers.front().ranks, 72);
  // 19 and 41 trays do not divide evenly: they make 10 + 9 and 14 + 14 + 13 trays, rather than 18 +
  // 1 and 18 + 18 + 5.
  EXPECT_EQ(tiers_of(nvl72_cluster(19)).tiers.front().ranks, 40);
  EXPECT_EQ(tiers_of(nvl72_cluster(41)).tiers.front().ranks, 56);
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

int links_between_switches(const TopologyGraph& graph) {
  int links = 0;
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const auto is_switch = [&](auto vertex) {
      return graph[vertex].kind == VertexKind::leaf || graph[vertex].kind == VertexKind::spine;
    };
    if (is_switch(source(edge, graph)) && is_switch(target(edge, graph))) ++links;
  }
  return links;
}

TEST(Topology, ATorusLinksNeighboursAlongEveryDimension) {
  // 4 × 3 × 2: along a dimension there are as many links as nodes, or half as many if it has two
  // nodes.
  const TopologyGraph graph = make_topology(torus_cluster({4, 3, 2}, BytesPerSecond(50e9)));
  EXPECT_EQ(census(graph)[VertexKind::leaf], 24);
  EXPECT_EQ(links_between_switches(graph), 24 + 24 + 12);
}

TEST(Topology, ATorusOfNoSaidSizeIsNearACube) {
  Cluster cluster = torus_cluster({64}, BytesPerSecond(50e9));
  cluster.inter.dimensions.clear();
  EXPECT_EQ(torus_dimensions(cluster), (std::vector{4, 4, 4}));
  cluster.nodes = 2048;
  EXPECT_EQ(torus_dimensions(cluster), (std::vector{16, 16, 8}));
  cluster.nodes = 7;
  EXPECT_EQ(torus_dimensions(cluster), (std::vector{7, 1, 1}));
}

TEST(Topology, ATorusLinkHasItsShareOfTheNics) {
  Cluster cluster = torus_cluster({4, 4, 2}, BytesPerSecond(0));
  EXPECT_DOUBLE_EQ(torus_link_bandwidth(cluster).value(), 8 * 50e9 / 5);  // 2 + 2 + 1 neighbours
}

TEST(Topology, ADragonflyLinksAllSwitchesOfAGroupAndEveryTwoGroups) {
  // 5 groups of 4 switches with one global link each: 4 ports for 4 other groups.
  const TopologyGraph graph = make_topology(dragonfly_cluster(20, 4, 1, BytesPerSecond(50e9)));
  EXPECT_EQ(census(graph)[VertexKind::leaf], 20);
  EXPECT_EQ(links_between_switches(graph), 5 * 4 * 3 / 2 + 5 * 4 / 2);
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) {
    if (graph[vertex].kind != VertexKind::leaf) continue;
    EXPECT_EQ(out_degree(vertex, graph), 8u + 3u + 1u);  // NICs, the group, the world
  }
}

TEST(Topology, ADragonflyOfFewGroupsHasMoreLinksBetweenTwo) {
  // 3 groups of 4 switches with 2 global links each: 8 ports for 2 other groups.
  const TopologyGraph graph = make_topology(dragonfly_cluster(12, 4, 2, BytesPerSecond(50e9)));
  EXPECT_EQ(links_between_switches(graph), 3 * 6 + 3 * 4);
}

TEST(Topology, ADrawnFabricDealsTheNicsOfANodeOutToItsLinks) {
  Cluster cluster = drawn_cluster(BytesPerSecond(100e9));
  cluster.inter.links.push_back({{true, 0}, {false, 1}, BytesPerSecond(100e9)});
  const TopologyGraph graph = make_topology(cluster);
  EXPECT_EQ(census(graph)[VertexKind::nic], 32);
  std::map<double, int> cables;  // of node 0: four NICs share 400 GB/s, four 100 GB/s
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) {
    if (graph[vertex].kind != VertexKind::nic || graph[vertex].node != 0) continue;
    ++cables[graph[edge(vertex, leaf_of(graph, vertex), graph).first].bandwidth.value()];
  }
  EXPECT_EQ(cables, (std::map<double, int>{{25e9, 4}, {50e9, 4}}));
}

TEST(Topology, StaticRoutingGivesEveryUplinkASpine) {
  // A leaf of 2 nodes x 8 NICs, oversubscribed 4 times: 4 uplinks.
  const Cluster cluster = with_routing(fat_tree_cluster(4, 2, 4), FabricRouting::static_paths);
  const TopologyGraph graph = make_topology(cluster);
  EXPECT_EQ(census(graph)[VertexKind::spine], 4);
  EXPECT_EQ(links_between_switches(graph), 2 * 4);
}

std::string refusal_of(const Cluster& cluster) {
  const auto checked = check_fabric(cluster);
  return checked ? "none" : checked.error().message;
}

TEST(CheckFabric, AcceptsWhatCanBe) {
  for (const Cluster& cluster :
       {fat_tree_cluster(4, 2, 1), torus_cluster({4, 2}, BytesPerSecond(1e9)),
        dragonfly_cluster(20, 4, 1, BytesPerSecond(1e9)), drawn_cluster(BytesPerSecond(1e9))}) {
    EXPECT_EQ(refusal_of(cluster), "none");
  }
}

TEST(CheckFabric, NamesWhatCannotBe) {
  Cluster torus = torus_cluster({4, 2}, BytesPerSecond(1e9));
  torus.nodes = 12;
  EXPECT_EQ(refusal_of(torus),
            "found a torus of 4 x 2 for 12 nodes; allowed: dimensions whose product is the number "
            "of nodes");
  EXPECT_EQ(refusal_of(torus_cluster({521, 2}, BytesPerSecond(1e9))),
            "found a torus of 521 x 2; allowed: at most 256 nodes along a dimension");
  EXPECT_EQ(refusal_of(dragonfly_cluster(24, 4, 1, BytesPerSecond(1e9))),
            "found a dragonfly of 6 groups of 4 switches with 1 global links each; allowed: at "
            "most 5 groups");
  EXPECT_EQ(refusal_of(dragonfly_cluster(9000, 3000, 1, BytesPerSecond(1e9))),
            "found a dragonfly of 1.35e+07 links between its switches; allowed: at most 2e+06");
  EXPECT_EQ(refusal_of(torus_cluster({256, 256, 2}, BytesPerSecond(1e9))),
            "found 131072 nodes; allowed: at most 65536 on a torus, dragonfly or graph");
}

TEST(CheckFabric, NamesTheRankThatADrawnFabricCannotReach) {
  Cluster unlinked = drawn_cluster(BytesPerSecond(1e9));
  unlinked.inter.links.erase(unlinked.inter.links.begin() + 2);
  EXPECT_EQ(refusal_of(unlinked),
            "found no link of node-2 (ranks 16 to 23); allowed: from 1 link to 8, its NICs");
  Cluster parted = drawn_cluster(BytesPerSecond(1e9));
  std::erase_if(parted.inter.links, [](const FabricLink& link) {
    return link.from == FabricEnd{false, 1};
  });
  EXPECT_EQ(refusal_of(parted),
            "found no way from rank 0 to rank 16 (node-2); allowed: a connected graph");
  Cluster beyond = drawn_cluster(BytesPerSecond(1e9));
  beyond.nodes = 3;
  EXPECT_EQ(refusal_of(beyond), "found a link of node-3; allowed: node-0 to node-2");
}

TEST(Topology, IsConnectedWheneverThereIsAFabric) {
  for (const Cluster& cluster :
       {fat_tree_cluster(6, 2, 4), rail_cluster(5, 2, 1), four_nic_cluster(3), nvl72_cluster(40),
        pcie_cluster(3, 2), mesh_cluster(3), pcie_cluster(2, 16),
        torus_cluster({5, 3}, BytesPerSecond(1e9)), torus_cluster({1, 2}, BytesPerSecond(1e9)),
        dragonfly_cluster(13, 4, 2, BytesPerSecond(1e9)), drawn_cluster(BytesPerSecond(1e9)),
        with_routing(rail_cluster(5, 2, 3), FabricRouting::static_paths)}) {
    const TopologyGraph graph = make_topology(cluster);
    std::vector<int> component(num_vertices(graph));
    EXPECT_EQ(boost::connected_components(graph, component.data()), 1);
  }
}

}  // namespace
}  // namespace trainyard
