// Small clusters for the tests of this folder and of the collectives. The figures are those of the
// H100 node in devices.md (450 GB/s NVLink, eight 400 Gbit/s NICs), with a protocol efficiency of
// 1, so that expected values are bare link rates.
#pragma once

#include <utility>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/topology.h"

namespace trainyard {

inline Cluster fat_tree_cluster(int nodes, int nodes_per_leaf, double oversubscription) {
  Cluster cluster;
  cluster.devices_per_node = 8;
  cluster.nodes = nodes;
  cluster.nvlink_domain = 8;
  cluster.intra = {IntraNodeKind::nvswitch, BytesPerSecond(450e9), Seconds(3e-6)};
  cluster.inter.kind = InterNodeKind::fat_tree;
  cluster.inter.nics_per_node = 8;
  cluster.inter.bandwidth = BytesPerSecond(50e9);
  cluster.inter.oversubscription = oversubscription;
  cluster.inter.nodes_per_leaf = nodes_per_leaf;
  cluster.inter.efficiency = 1;
  cluster.inter.latency = Seconds(10e-6);
  return cluster;
}

inline Cluster rail_cluster(int nodes, int nodes_per_leaf, double oversubscription) {
  Cluster cluster = fat_tree_cluster(nodes, nodes_per_leaf, oversubscription);
  cluster.inter.kind = InterNodeKind::rail;
  return cluster;
}

// Four NICs for eight devices, as in InternEvo's nodes.
inline Cluster four_nic_cluster(int nodes) {
  Cluster cluster = fat_tree_cluster(nodes, nodes, 1);
  cluster.inter.nics_per_node = 4;
  return cluster;
}

// GB200 NVL72: trays of four devices, 72 devices in one NVLink domain.
inline Cluster nvl72_cluster(int trays) {
  Cluster cluster = fat_tree_cluster(trays, 36, 2);
  cluster.devices_per_node = 4;
  cluster.nvlink_domain = 72;
  cluster.inter.nics_per_node = 4;
  cluster.intra.bandwidth = BytesPerSecond(900e9);
  return cluster;
}

inline Cluster pcie_cluster(int nodes, int nics) {
  Cluster cluster = fat_tree_cluster(nodes, nodes, 1);
  cluster.intra = {IntraNodeKind::pcie, BytesPerSecond(32e9), Seconds(3e-6)};
  cluster.inter.nics_per_node = nics;
  return cluster;
}

inline Cluster mesh_cluster(int nodes) {
  Cluster cluster = fat_tree_cluster(nodes, nodes, 1);
  cluster.intra = {IntraNodeKind::nvlink_mesh, BytesPerSecond(140e9), Seconds(3e-6)};
  return cluster;
}

// Nodes on a torus whose links carry `link` in each direction. The eight NICs of a node have 400
// GB/s together.
inline Cluster torus_cluster(std::vector<int> dimensions, BytesPerSecond link) {
  int nodes = 1;
  for (const int side : dimensions) nodes *= side;
  Cluster cluster = fat_tree_cluster(nodes, 1, 1);
  cluster.inter.kind = InterNodeKind::torus;
  cluster.inter.dimensions = std::move(dimensions);
  cluster.inter.link_bandwidth = link;
  return cluster;
}

// A dragonfly with one node per switch and `leaves` switches per group; every link carries `link`
// in each direction.
inline Cluster dragonfly_cluster(int nodes, int leaves, int global_links, BytesPerSecond link) {
  Cluster cluster = fat_tree_cluster(nodes, 1, 1);
  cluster.inter.kind = InterNodeKind::dragonfly;
  cluster.inter.leaves_per_group = leaves;
  cluster.inter.global_links = global_links;
  cluster.inter.link_bandwidth = link;
  return cluster;
}

// A drawn fabric: two leaves with two nodes each, and two spines. A cable of bandwidth `between`
// joins each leaf to each spine.
inline Cluster drawn_cluster(BytesPerSecond between) {
  Cluster cluster = fat_tree_cluster(4, 1, 1);
  cluster.inter.kind = InterNodeKind::graph;
  cluster.inter.switches = {"leaf-0", "leaf-1", "spine-0", "spine-1"};
  for (int node = 0; node < 4; ++node) {
    cluster.inter.links.push_back({{true, node}, {false, node / 2}, BytesPerSecond(400e9)});
  }
  for (int leaf = 0; leaf < 2; ++leaf) {
    for (const int spine : {2, 3}) {
      cluster.inter.links.push_back({{false, leaf}, {false, spine}, between});
    }
  }
  return cluster;
}

inline Cluster with_routing(Cluster cluster, FabricRouting routing) {
  cluster.inter.routing = routing;
  return cluster;
}

inline FabricTiers tiers_of(const Cluster& cluster) { return fabric_tiers(cluster); }

}  // namespace trainyard
