#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <limits>

#include "model/cluster/fabric_shape.h"
#include "model/cluster/routed_groups.h"
#include "model/cluster/straddling_groups.h"
#include "model/cluster/topology_graph.h"

namespace trainyard {
namespace {

// How far out in the hierarchy a vertex is: 0 for a node's own parts, 1 for leaves, 2 for spines.
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

// A subtree that is left when all vertices above some level are removed, and the bandwidth of the
// links that joined it to them.
struct Subtree {
  int ranks = 0;
  BytesPerSecond cut;
};
// The sets of vertices that links between vertices `within` join.
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
  // By the root of a set: the place of its subtree in `result`.
  std::vector<std::size_t> place(num_vertices(graph), num_vertices(graph));
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
    tiers.one_link = tiers.one_link || other == VertexKind::host;
  }
}

// Under PCIe a device reaches the NICs over the same link as its neighbours, which the fabric's
// efficiency does not apply to.
BytesPerSecond device_limit(const FabricTiers& tiers) {
  return tiers.one_link ? tiers.inside : BytesPerSecond(std::numeric_limits<double>::infinity());
}

// NICs hang on devices in blocks. Where blocks are unequal, this is the one with the fewest NICs
// for the most devices.
DeviceNics device_nics(const Cluster& cluster) {
  const int devices = cluster.devices_per_node;
  const int nics = cluster.inter.nics_per_node;
  const BytesPerSecond nic = cluster.inter.bandwidth * cluster.inter.efficiency;
  if (nics == 0) return {};
  if (cluster.intra.kind == IntraNodeKind::pcie) {
    return {devices, nics * nic / devices, std::min(cluster.intra.bandwidth, nics * nic)};
  }
  const int own = nics / devices;
  if (own > 0) return {1, own * nic, own * nic};
  const int sharing = (devices + nics - 1) / nics;
  return {devices % nics == 0 ? sharing : 1, nic / sharing, nic};
}

bool has_unlike_nics(const Cluster& cluster) {
  const int devices = cluster.devices_per_node;
  const int nics = cluster.inter.nics_per_node;
  if (nics == 0 || cluster.intra.kind == IntraNodeKind::pcie) return false;
  return nics % devices != 0 && devices % nics != 0;
}

// The fields that need no graph: all but `tiers` and the links inside a domain.
FabricTiers tiers_without_links(const Cluster& cluster) {
  FabricTiers tiers;
  tiers.devices = cluster.devices();
  tiers.inside_latency = cluster.intra.latency;
  tiers.small_latency = cluster.inter.small_latency;
  tiers.small_share = cluster.inter.small_share;
  tiers.nics = device_nics(cluster);
  tiers.unlike_nics = has_unlike_nics(cluster);
  tiers.rails = cluster.inter.kind == InterNodeKind::rail;
  return tiers;
}

// ---- Without the graph ----------------------------------------------------------------

// A cluster of the first domain alone, for its links inside.
Cluster one_domain(const Cluster& cluster) {
  Cluster one = cluster;
  one.nodes = nodes_per_domain(cluster);
  one.inter = {};
  return one;
}

BytesPerSecond out_of_domain(const Cluster& cluster, int nodes) {
  BytesPerSecond cut;
  for (int nic = 0; nic < nodes * cluster.inter.nics_per_node; ++nic) {
    cut += cluster.inter.bandwidth;
  }
  return cut;
}

// Bandwidth out of the leaves above `nodes` nodes: one leaf, or one for each rail.
BytesPerSecond out_of_row(const Cluster& cluster, int nodes) {
  const InterNode& inter = cluster.inter;
  const int rails = inter.kind == InterNodeKind::rail ? inter.nics_per_node : 1;
  const int nics_below_leaf = inter.nics_per_node / rails;  // of a node
  const double ports = static_cast<double>(nodes) * nics_below_leaf;
  BytesPerSecond cut;
  for (int rail = 0; rail < rails; ++rail) cut += inter.bandwidth * ports / inter.oversubscription;
  return cut;
}

// The tier of subtrees of `nodes` nodes. `least`: bandwidth out for each of their devices; `limit`:
// a device's own.
Tier tier_of(const Cluster& cluster, int nodes, BytesPerSecond limit, BytesPerSecond least) {
  return {nodes * cluster.devices_per_node, std::min(limit, least * cluster.inter.efficiency),
          cluster.inter.latency};
}

// All domains are alike but the last one, which may have fewer nodes.
Tier domain_tier(const Cluster& cluster, int nodes, BytesPerSecond limit) {
  const auto way_out = [&](int of) {
    return out_of_domain(cluster, of) / (of * cluster.devices_per_node);
  };
  const int rest = cluster.nodes % nodes;
  BytesPerSecond least = way_out(nodes);
  if (rest > 0) least = std::min(least, way_out(rest));
  return tier_of(cluster, nodes, limit, least);
}

// Every leaf has all its uplinks, however few nodes hang on the last one.
Tier row_tier(const Cluster& cluster, int nodes, BytesPerSecond limit) {
  return tier_of(cluster, nodes, limit,
                 out_of_row(cluster, nodes) / (nodes * cluster.devices_per_node));
}

}  // namespace

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

FabricTiers fabric_tiers(const Cluster& cluster, const TopologyGraph& graph) {
  FabricTiers tiers = tiers_without_links(cluster);
  read_inside(graph, tiers);
  for (int highest = 0; highest < 2; ++highest) {
    const std::vector<Subtree> parts = subtrees(graph, highest);
    if (parts.size() == 1) break;
    BytesPerSecond way_out(std::numeric_limits<double>::infinity());
    for (const Subtree& part : parts) way_out = std::min(way_out, part.cut / part.ranks);
    tiers.tiers.push_back({parts.front().ranks,
                           std::min(device_limit(tiers), way_out * cluster.inter.efficiency),
                           cluster.inter.latency});
  }
  if (tiers.tiers.empty()) return tiers;
  if (is_routed(cluster.inter)) {
    tiers.routed = std::make_shared<RoutedGroups>(cluster, graph, tiers);
  } else {
    tiers.straddling = std::make_shared<StraddlingGroups>(cluster, tiers);
  }
  return tiers;
}

FabricTiers fabric_tiers(const Cluster& cluster) {
  if (is_routed(cluster.inter)) return fabric_tiers(cluster, make_topology(cluster));
  FabricTiers tiers = tiers_without_links(cluster);
  read_inside(make_topology(one_domain(cluster)), tiers);
  const BytesPerSecond limit = device_limit(tiers);
  const int domain = nodes_per_domain(cluster), row = nodes_below_leaf(cluster);
  if (domain < cluster.nodes) tiers.tiers.push_back(domain_tier(cluster, domain, limit));
  if (row < cluster.nodes) tiers.tiers.push_back(row_tier(cluster, row, limit));
  if (!tiers.tiers.empty()) tiers.straddling = std::make_shared<StraddlingGroups>(cluster, tiers);
  return tiers;
}

}  // namespace trainyard
