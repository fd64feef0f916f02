#include "model/cluster/topology.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>

#include "model/cluster/fabric_shape.h"
#include "model/cluster/topology_graph.h"

namespace trainyard {
namespace {

using VertexId = TopologyGraph::vertex_descriptor;

// Reserves memory for the devices, one hub for each node, and the NICs.
void reserve(TopologyGraph& graph, const Cluster& cluster) {
  const auto devices = static_cast<std::size_t>(cluster.devices());
  const std::size_t nics = static_cast<std::size_t>(cluster.nodes) *
                           static_cast<std::size_t>(cluster.inter.nics_per_node);
  graph.m_vertices.reserve(devices + static_cast<std::size_t>(cluster.nodes) + nics);
  constexpr std::size_t kLinks = 2;  // to the hub and to a NIC
  for (std::size_t device = 0; device < devices; ++device) {
    graph.out_edge_list(device).reserve(kLinks);
  }
}

// Devices without a switch, linked pairwise: each has its bandwidth split over the others.
void add_mesh(TopologyGraph& graph, const Cluster& cluster, int first, int count) {
  const Link link{cluster.intra.bandwidth / std::max(1, count - 1), cluster.intra.latency};
  for (int a = first; a < first + count; ++a) {
    for (int b = a + 1; b < first + count; ++b) add_edge(VertexId(a), VertexId(b), link, graph);
  }
}

// Devices on one switch, with half of a step's α on either side of it.
void add_star(TopologyGraph& graph, const Cluster& cluster, Vertex hub, int first, int count) {
  const Link link{cluster.intra.bandwidth, cluster.intra.latency / 2};
  const VertexId centre = add_vertex(hub, graph);
  graph.out_edge_list(centre).reserve(static_cast<std::size_t>(count));
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

std::vector<VertexId> add_switches(TopologyGraph& graph, VertexKind kind, int count) {
  std::vector<VertexId> switches;
  switches.reserve(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) {
    switches.push_back(add_vertex({kind, index, -1}, graph));
  }
  return switches;
}

// The leaf on which a NIC hangs, and the bandwidth of its cable.
struct Socket {
  VertexId leaf = 0;
  BytesPerSecond bandwidth;
};
using SocketOf = std::function<Socket(int node, int nic)>;

// Software and NIC dominate a step's α, so it lies on the links between NIC and leaf; the switches
// above add well under a microsecond.
void add_nics(TopologyGraph& graph, const Cluster& cluster, const SocketOf& socket_of) {
  const int nics = cluster.inter.nics_per_node;
  for (int node = 0; node < cluster.nodes; ++node) {
    for (int index = 0; index < nics; ++index) {
      const VertexId nic = add_vertex({VertexKind::nic, node * nics + index, node}, graph);
      graph.out_edge_list(nic).reserve(2);
      attach_nic(graph, cluster, nic, node, index);
      const Socket socket = socket_of(node, index);
      add_edge(nic, socket.leaf, {socket.bandwidth, cluster.inter.latency / 2}, graph);
    }
  }
}

// Adds `leaves_of` leaf switches for every `below` nodes, and deals out each node's NICs to them.
std::vector<VertexId> add_leaves(TopologyGraph& graph, const Cluster& cluster, int below,
                                 int leaves_of) {
  const int rows = (cluster.nodes + below - 1) / below;
  std::vector<VertexId> leaves = add_switches(graph, VertexKind::leaf, rows * leaves_of);
  add_nics(graph, cluster, [&](int node, int nic) -> Socket {
    const int leaf = node / below * leaves_of + nic % leaves_of;
    return {leaves[static_cast<std::size_t>(leaf)], cluster.inter.bandwidth};
  });
  return leaves;
}

// Number of spines. With static routing, which tells uplinks apart, a leaf's uplinks are as fast as
// NICs and each leads to a spine of its own. Else one link to one spine stands for all of them.
int spines_of(const Cluster& cluster, double ports) {
  if (cluster.inter.routing == FabricRouting::adaptive) return 1;
  return std::max(1, static_cast<int>(std::lround(ports / cluster.inter.oversubscription)));
}

void add_tree(TopologyGraph& graph, const Cluster& cluster) {
  const int rails = cluster.inter.kind == InterNodeKind::rail ? cluster.inter.nics_per_node : 1;
  const std::vector<VertexId> leaves = add_leaves(graph, cluster, nodes_below_leaf(cluster), rails);
  if (leaves.size() < 2) return;
  const auto most = static_cast<double>(out_degree(leaves.front(), graph));
  const std::vector<VertexId> spines =
      add_switches(graph, VertexKind::spine, spines_of(cluster, most));
  // The last leaves have all their uplinks too, however few nodes hang on them.
  const BytesPerSecond uplink = cluster.inter.bandwidth * most / cluster.inter.oversubscription /
                                static_cast<double>(spines.size());
  for (const VertexId leaf : leaves) {
    for (const VertexId spine : spines) add_edge(leaf, spine, {uplink, Seconds(0)}, graph);
  }
}

// One switch for each node. Switches of neighbours along each dimension are linked, and so are the
// first and the last one of a line.
void add_torus(TopologyGraph& graph, const Cluster& cluster) {
  const std::vector<VertexId> leaves = add_leaves(graph, cluster, 1, 1);
  const Link link{torus_link_bandwidth(cluster), Seconds(0)};
  int stride = 1;
  for (const int side : torus_dimensions(cluster)) {
    for (int node = 0; node < cluster.nodes; ++node) {
      const int at = node / stride % side;
      if (side == 1 || (side == 2 && at == 1)) continue;
      const int next = node + ((at + 1) % side - at) * stride;
      add_edge(leaves[static_cast<std::size_t>(node)], leaves[static_cast<std::size_t>(next)], link,
               graph);
    }
    stride *= side;
  }
}

// The links between groups are dealt out to a group's switches in turn, so that all have equally
// many.
void add_dragonfly(TopologyGraph& graph, const Cluster& cluster) {
  const InterNode& inter = cluster.inter;
  const DragonflyShape shape = dragonfly_shape(cluster);
  const int below = nodes_below_leaf(cluster);
  const std::vector<VertexId> leaves =
      add_switches(graph, VertexKind::leaf, shape.groups * shape.leaves);
  add_nics(graph, cluster, [&](int node, int) -> Socket {
    return {leaves[static_cast<std::size_t>(node / below)], inter.bandwidth};
  });
  const bool own = inter.link_bandwidth.value() > 0;
  const Link link{own ? inter.link_bandwidth : inter.bandwidth, Seconds(0)};
  const auto leaf = [&](int group, int index) {
    return leaves[static_cast<std::size_t>(group * shape.leaves + index % shape.leaves)];
  };
  for (int group = 0; group < shape.groups; ++group) {
    for (int a = 0; a < shape.leaves; ++a) {
      for (int b = a + 1; b < shape.leaves; ++b) {
        add_edge(leaf(group, a), leaf(group, b), link, graph);
      }
    }
    for (int other = group + 1; other < shape.groups; ++other) {
      for (int i = 0; i < shape.links_between; ++i) {
        add_edge(leaf(group, (other - 1) * shape.links_between + i),
                 leaf(other, group * shape.links_between + i), link, graph);
      }
    }
  }
}

// The fabric as drawn. A node's NICs are dealt out to its links, and NICs on one link share it.
void add_drawn(TopologyGraph& graph, const Cluster& cluster) {
  const InterNode& inter = cluster.inter;
  const std::vector<VertexId> switches =
      add_switches(graph, VertexKind::leaf, static_cast<int>(inter.switches.size()));
  const auto vertex = [&](FabricEnd end) { return switches[static_cast<std::size_t>(end.index)]; };
  std::vector<std::vector<Socket>> sockets(static_cast<std::size_t>(cluster.nodes));
  for (const FabricLink& link : inter.links) {
    if (!link.from.node && !link.to.node) {
      add_edge(vertex(link.from), vertex(link.to), {link.bandwidth, Seconds(0)}, graph);
      continue;
    }
    const FabricEnd node = link.from.node ? link.from : link.to;
    const FabricEnd other = link.from.node ? link.to : link.from;
    sockets[static_cast<std::size_t>(node.index)].push_back({vertex(other), link.bandwidth});
  }
  add_nics(graph, cluster, [&](int node, int nic) -> Socket {
    const std::vector<Socket>& all = sockets[static_cast<std::size_t>(node)];
    const auto count = static_cast<int>(all.size());
    const int place = nic % count;
    const int sharing = (inter.nics_per_node - place + count - 1) / count;
    const Socket& socket = all[static_cast<std::size_t>(place)];
    return {socket.leaf, std::min(inter.bandwidth, socket.bandwidth / sharing)};
  });
}

void add_fabric(TopologyGraph& graph, const Cluster& cluster) {
  switch (cluster.inter.kind) {
    case InterNodeKind::none:
      return;
    case InterNodeKind::fat_tree:
    case InterNodeKind::rail:
      return add_tree(graph, cluster);
    case InterNodeKind::torus:
      return add_torus(graph, cluster);
    case InterNodeKind::dragonfly:
      return add_dragonfly(graph, cluster);
    case InterNodeKind::graph:
      return add_drawn(graph, cluster);
  }
}

}  // namespace

TopologyGraph make_topology(const Cluster& cluster) {
  assert(cluster.devices_per_node > 0 && cluster.nodes > 0 && "a cluster has devices");
  TopologyGraph graph(static_cast<std::size_t>(cluster.devices()));
  reserve(graph, cluster);
  for (int device = 0; device < cluster.devices(); ++device) {
    graph[VertexId(device)] = {VertexKind::device, device, device / cluster.devices_per_node};
  }
  add_inside(graph, cluster);
  add_fabric(graph, cluster);
  return graph;
}

std::shared_ptr<const TopologyGraph> LazyTopology::graph() {
  std::shared_ptr<const TopologyGraph> known = graph_.load();
  if (known) return known;
  // In place: a graph of Boost cannot be moved.
  std::shared_ptr<const TopologyGraph> made(new TopologyGraph(make_topology(cluster_)));
  return graph_.compare_exchange_strong(known, made) ? made : known;
}

}  // namespace trainyard
