#include "model/cluster/topology.h"

#include <algorithm>
#include <cassert>

namespace trainyard {
namespace {

using VertexId = TopologyGraph::vertex_descriptor;

// Nodes of one NVLink domain: the most that fit, in equal segments where that wastes less than half
// of a domain.
int nodes_per_domain(const Cluster& cluster) {
  if (cluster.intra.kind != IntraNodeKind::nvswitch) return 1;
  const int most = std::max(1, cluster.nvlink_domain / cluster.devices_per_node);
  if (cluster.nodes <= most) return cluster.nodes;
  for (int nodes = most; 2 * nodes > most; --nodes) {
    if (cluster.nodes % nodes == 0) return nodes;
  }
  return most;
}

// Nodes below one leaf: whole domains, so that the hierarchy nests.
int nodes_per_leaf(const Cluster& cluster) {
  const int domain = nodes_per_domain(cluster);
  return std::max(1, cluster.inter.nodes_per_leaf / domain) * domain;
}

// Devices without a switch, linked pairwise: each has its bandwidth split over the others.
void add_mesh(TopologyGraph& graph, const Cluster& cluster, int first, int count) {
  const Link link{cluster.intra.bandwidth / std::max(1, count - 1), cluster.intra.latency};
  for (int a = first; a < first + count; ++a) {
    for (int b = a + 1; b < first + count; ++b) add_edge(VertexId(a), VertexId(b), link, graph);
  }
}

// Devices on one switch: half of a step's α on either side of it.
void add_star(TopologyGraph& graph, const Cluster& cluster, Vertex hub, int first, int count) {
  const Link link{cluster.intra.bandwidth, cluster.intra.latency / 2};
  const VertexId centre = add_vertex(hub, graph);
  for (int device = first; device < first + count; ++device) {
    add_edge(VertexId(device), centre, link, graph);
  }
}

void add_inside(TopologyGraph& graph, const Cluster& cluster) {
  const int count = nodes_per_domain(cluster) * cluster.devices_per_node;
  int index = 0;
  for (int first = 0; first < cluster.devices(); first += count, ++index) {
    const int devices = std::min(count, cluster.devices() - first);
    switch (cluster.intra.kind) {
      case IntraNodeKind::nvswitch:
        add_star(graph, cluster, {VertexKind::nvlink_switch, index}, first, devices);
        break;
      case IntraNodeKind::nvlink_mesh:
        add_mesh(graph, cluster, first, devices);
        break;
      case IntraNodeKind::pcie:
        add_star(graph, cluster, {VertexKind::host, index, index}, first, devices);
        break;
    }
  }
}

// NIC `nic` of `node` hangs on the devices nearest to it, or on the PCIe root they share.
// Requires: add_inside has run, so that the roots follow the devices in node order.
void attach_nic(TopologyGraph& graph, const Cluster& cluster, VertexId nic, int node, int index) {
  const Link link{cluster.inter.bandwidth, Seconds(0)};
  if (cluster.intra.kind == IntraNodeKind::pcie) {
    add_edge(nic, VertexId(cluster.devices() + node), link, graph);
    return;
  }
  const int devices = cluster.devices_per_node;
  const int nics = cluster.inter.nics_per_node;
  const int first = index * devices / nics;
  const int last = std::max(first + 1, (index + 1) * devices / nics);
  for (int device = first; device < last; ++device) {
    add_edge(nic, VertexId(node * devices + device), link, graph);
  }
}

// Leaf switches and the NICs below them. Software and NIC dominate a step's α, so it lies on the
// links between NIC and leaf; the switches above add well under a microsecond.
std::vector<VertexId> add_leaves(TopologyGraph& graph, const Cluster& cluster) {
  const int below = nodes_per_leaf(cluster);
  const int nics = cluster.inter.nics_per_node;
  const int rails = cluster.inter.kind == InterNodeKind::rail ? nics : 1;
  const Link link{cluster.inter.bandwidth, cluster.inter.latency / 2};
  std::vector<VertexId> leaves;
  for (int node = 0; node < cluster.nodes; ++node) {
    const auto pod = static_cast<std::size_t>(node / below) * static_cast<std::size_t>(rails);
    for (int rail = 0; node % below == 0 && rail < rails; ++rail) {
      leaves.push_back(add_vertex({VertexKind::leaf, static_cast<int>(leaves.size()), -1}, graph));
    }
    for (int index = 0; index < nics; ++index) {
      const VertexId nic = add_vertex({VertexKind::nic, node * nics + index, node}, graph);
      attach_nic(graph, cluster, nic, node, index);
      add_edge(nic, leaves[pod + static_cast<std::size_t>(index % rails)], link, graph);
    }
  }
  return leaves;
}

// The spine layer. A leaf has uplinks in proportion to the NICs below it.
void add_spine(TopologyGraph& graph, const Cluster& cluster, const std::vector<VertexId>& leaves) {
  if (leaves.size() < 2) return;
  const VertexId spine = add_vertex({VertexKind::spine, 0, -1}, graph);
  for (const VertexId leaf : leaves) {
    const auto ports = static_cast<double>(out_degree(leaf, graph));
    const BytesPerSecond uplink = cluster.inter.bandwidth * ports / cluster.inter.oversubscription;
    add_edge(leaf, spine, {uplink, Seconds(0)}, graph);
  }
}

}  // namespace

TopologyGraph make_topology(const Cluster& cluster) {
  assert(cluster.devices_per_node > 0 && cluster.nodes > 0 && "a cluster has devices");
  TopologyGraph graph(static_cast<std::size_t>(cluster.devices()));
  for (int device = 0; device < cluster.devices(); ++device) {
    graph[VertexId(device)] = {VertexKind::device, device, device / cluster.devices_per_node};
  }
  add_inside(graph, cluster);
  if (cluster.inter.kind == InterNodeKind::none) return graph;
  add_spine(graph, cluster, add_leaves(graph, cluster));
  return graph;
}

}  // namespace trainyard
