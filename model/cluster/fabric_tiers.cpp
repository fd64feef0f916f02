#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <limits>

#include "model/cluster/routed_groups.h"
#include "model/cluster/topology_graph.h"

namespace trainyard {
namespace {

// How far out in the hierarchy a vertex stands: a node's own parts, leaves, spines.
int level(const Vertex& vertex) {
  switch (vertex.kind) {
    case VertexKind::device:
    case VertexKind::nvlink_switch:
    case VertexKind::host:
    case VertexKind::nic:
      return 0;
    case VertexKind::leaf:
      return 1;
    case VertexKind::spine:
      break;
  }
  return 2;
}

// The subtrees that are left when everything above `highest` is taken away, by their first
// vertices, and what joined them.
struct Subtree {
  int ranks = 0;
  BytesPerSecond cut;
};
boost::disjoint_sets_with_storage<> joined(const TopologyGraph& graph, const auto& within) {
  boost::disjoint_sets_with_storage<> sets(num_vertices(graph));
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const auto a = source(edge, graph);
    const auto b = target(edge, graph);
    if (within(a) && within(b)) sets.union_set(a, b);
  }
  return sets;
}

std::vector<Subtree> subtrees(const TopologyGraph& graph, int highest) {
  const auto within = [&](TopologyGraph::vertex_descriptor vertex) {
    return level(graph[vertex]) <= highest;
  };
  boost::disjoint_sets_with_storage<> sets = joined(graph, within);
  std::vector<Subtree> result;
  std::vector<std::size_t> place(num_vertices(graph), num_vertices(graph));  // of a set's subtree
  const auto subtree_of = [&](TopologyGraph::vertex_descriptor vertex) -> Subtree& {
    std::size_t& own = place[sets.find_set(vertex)];
    if (own == place.size()) {
      own = result.size();
      result.emplace_back();
    }
    return result[own];
  };
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) {
    if (!within(vertex)) continue;
    subtree_of(vertex).ranks += graph[vertex].kind == VertexKind::device ? 1 : 0;
  }
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const auto a = source(edge, graph);
    const auto b = target(edge, graph);
    if (within(a) != within(b)) subtree_of(within(a) ? a : b).cut += graph[edge].bandwidth;
  }
  return result;
}

void read_inside(const TopologyGraph& graph, FabricTiers& tiers) {
  tiers.switched = false;
  for (const auto edge : boost::make_iterator_range(out_edges(0, graph))) {
    const VertexKind other = graph[target(edge, graph)].kind;
    if (other == VertexKind::nic) continue;
    tiers.inside += graph[edge].bandwidth;
    tiers.inside_pair = std::max(tiers.inside_pair, graph[edge].bandwidth);
    tiers.switched = tiers.switched || other == VertexKind::nvlink_switch;
  }
}

// With PCIe a device reaches the NICs over the very link it has to its neighbours.
BytesPerSecond device_limit(const Cluster& cluster, const FabricTiers& tiers) {
  return cluster.intra.kind == IntraNodeKind::pcie
             ? tiers.inside
             : BytesPerSecond(std::numeric_limits<double>::infinity());
}

// Whether links between switches carry what no subtree's cut tells.
bool is_routed(const InterNode& inter) {
  switch (inter.kind) {
    case InterNodeKind::none:
      return false;
    case InterNodeKind::fat_tree:
    case InterNodeKind::rail:
      return inter.routing == FabricRouting::static_paths;
    case InterNodeKind::dragonfly:
    case InterNodeKind::torus:
    case InterNodeKind::graph:
      break;
  }
  return true;
}

}  // namespace

FabricTiers fabric_tiers(const Cluster& cluster, const TopologyGraph& graph) {
  FabricTiers tiers;
  tiers.devices = cluster.devices();
  tiers.inside_latency = cluster.intra.latency;
  tiers.small_latency = cluster.inter.small_latency;
  tiers.small_share = cluster.inter.small_share;
  tiers.rails = cluster.inter.kind == InterNodeKind::rail;
  read_inside(graph, tiers);
  for (int highest = 0; highest < 2; ++highest) {
    const std::vector<Subtree> parts = subtrees(graph, highest);
    if (parts.size() == 1) break;
    BytesPerSecond way_out = device_limit(cluster, tiers);
    for (const Subtree& part : parts) way_out = std::min(way_out, part.cut / part.ranks);
    tiers.tiers.push_back(
        {parts.front().ranks, way_out * cluster.inter.efficiency, cluster.inter.latency});
  }
  if (is_routed(cluster.inter) && !tiers.tiers.empty()) {
    tiers.routed = std::make_shared<RoutedGroups>(cluster, graph, tiers.tiers.front());
  }
  return tiers;
}

FabricTiers fabric_tiers(const Cluster& cluster) {
  return fabric_tiers(cluster, make_topology(cluster));
}

}  // namespace trainyard
