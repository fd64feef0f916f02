#include "model/cluster/fabric_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace trainyard {
namespace {

// Limits on the size of routed fabrics: beyond them, following every route takes too long.
constexpr int kLongestSide = 256;
constexpr int kMostNodes = 65536;
constexpr std::size_t kMostDrawnSwitches = 4096;
constexpr double kMostLinks = 2e6;

// The largest divisor of `count` that is at most its `degree`-th root.
int divisor_near_root(int count, int degree) {
  auto divisor = static_cast<int>(std::pow(count, 1.0 / degree) + 1e-9);
  while (count % divisor != 0) --divisor;
  return divisor;
}

std::string name_of(FabricEnd end, const InterNode& inter) {
  return end.node ? fmt::format("node-{}", end.index)
                  : inter.switches[static_cast<std::size_t>(end.index)];
}

Expected<void> check_torus(const Cluster& cluster) {
  const std::vector<int> sides = torus_dimensions(cluster);
  double nodes = 1;
  for (const int side : sides) nodes *= side;
  if (*std::ranges::max_element(sides) > kLongestSide) {
    return failure("dimensions",
                   fmt::format("found a torus of {}; allowed: at most {} nodes along a dimension",
                               fmt::join(sides, " x "), kLongestSide));
  }
  if (nodes == cluster.nodes) return {};
  return failure("dimensions",
                 fmt::format("found a torus of {} for {} nodes; allowed: dimensions whose product "
                             "is the number of nodes",
                             fmt::join(sides, " x "), cluster.nodes));
}

Expected<void> check_link_count(const DragonflyShape& shape) {
  const double groups = shape.groups;
  const double links = groups * shape.leaves * (shape.leaves - 1) / 2 +
                       groups * (groups - 1) / 2 * shape.links_between;
  if (links <= kMostLinks) return {};
  return failure("leaves_per_group",
                 fmt::format("found a dragonfly of {:.3g} links between its switches; allowed: at "
                             "most {:.3g}",
                             links, kMostLinks));
}

Expected<void> check_dragonfly(const Cluster& cluster) {
  const InterNode& inter = cluster.inter;
  const DragonflyShape shape = dragonfly_shape(cluster);
  if (shape.links_between > 0) return check_link_count(shape);
  return failure("global_links",
                 fmt::format("found a dragonfly of {} groups of {} switches with {} global links "
                             "each; allowed: at most {} groups",
                             shape.groups, inter.leaves_per_group, inter.global_links,
                             inter.leaves_per_group * inter.global_links + 1));
}

// Disjoint sets of vertices joined by links; the root stands for all vertices of a set.
class Joined {
 public:
  explicit Joined(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t at) {
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

 private:
  std::vector<std::size_t> parent_;
};

Expected<void> check_ends(const Cluster& cluster) {
  std::vector<int> links_of(static_cast<std::size_t>(cluster.nodes));
  for (const FabricLink& link : cluster.inter.links) {
    for (const FabricEnd end : {link.from, link.to}) {
      if (!end.node) continue;
      if (end.index >= cluster.nodes) {
        return failure("links", fmt::format("found a link of node-{}; allowed: node-0 to node-{}",
                                            end.index, cluster.nodes - 1));
      }
      ++links_of[static_cast<std::size_t>(end.index)];
    }
  }
  for (int node = 0; node < cluster.nodes; ++node) {
    const int links = links_of[static_cast<std::size_t>(node)];
    if (links >= 1 && links <= cluster.inter.nics_per_node) continue;
    const int first = node * cluster.devices_per_node;
    return failure("links",
                   fmt::format("found {} of node-{} (ranks {} to {}); allowed: from 1 link to {}, "
                               "its NICs",
                               links == 0 ? "no link" : fmt::format("{} links", links), node, first,
                               first + cluster.devices_per_node - 1, cluster.inter.nics_per_node));
  }
  return {};
}

// Places in the disjoint sets: first the switches, then the nodes.
Expected<void> check_graph(const Cluster& cluster) {
  const InterNode& inter = cluster.inter;
  const std::size_t switches = inter.switches.size();
  if (switches > kMostDrawnSwitches) {
    return failure("switches", fmt::format("found {} switches; allowed: at most {}", switches,
                                           kMostDrawnSwitches));
  }
  if (auto done = check_ends(cluster); !done) return done;
  const auto place = [&](FabricEnd end) {
    return static_cast<std::size_t>(end.index) + (end.node ? switches : 0);
  };
  Joined joined(switches + static_cast<std::size_t>(cluster.nodes));
  for (const FabricLink& link : inter.links) joined.join(place(link.from), place(link.to));
  const std::size_t first = joined.root(place({true, 0}));
  for (int node = 0; node < cluster.nodes; ++node) {
    if (joined.root(place({true, node})) == first) continue;
    return failure(
        "links", fmt::format("found no way from rank 0 to rank {} ({}); allowed: a connected graph",
                             node * cluster.devices_per_node, name_of({true, node}, inter)));
  }
  return {};
}

}  // namespace

int nodes_per_domain(const Cluster& cluster) {
  if (cluster.intra.kind != IntraNodeKind::nvswitch) return 1;
  const int most = std::max(1, cluster.nvlink_domain / cluster.devices_per_node);
  if (cluster.nodes <= most) return cluster.nodes;
  int best = most;
  int fewest = 0;  // nodes of the last, smallest domain with `best`
  for (int nodes = most; 2 * nodes > most; --nodes) {
    const int rest = cluster.nodes % nodes;
    if (rest == 0) return nodes;
    if (rest > fewest) {
      best = nodes;
      fewest = rest;
    }
  }
  return best;
}

int nodes_below_leaf(const Cluster& cluster) {
  const int domain = nodes_per_domain(cluster);
  return std::max(1, cluster.inter.nodes_per_leaf / domain) * domain;
}

std::vector<int> torus_dimensions(const Cluster& cluster) {
  if (!cluster.inter.dimensions.empty()) return cluster.inter.dimensions;
  const int least = divisor_near_root(cluster.nodes, 3);
  const int middle = divisor_near_root(cluster.nodes / least, 2);
  return {cluster.nodes / least / middle, middle, least};
}

BytesPerSecond torus_link_bandwidth(const Cluster& cluster) {
  const InterNode& inter = cluster.inter;
  if (inter.link_bandwidth.value() > 0) return inter.link_bandwidth;
  int neighbours = 0;
  for (const int side : torus_dimensions(cluster)) neighbours += std::min(2, side - 1);
  return inter.bandwidth * inter.nics_per_node / std::max(1, neighbours);
}

DragonflyShape dragonfly_shape(const Cluster& cluster) {
  const InterNode& inter = cluster.inter;
  const std::int64_t below = std::int64_t{nodes_below_leaf(cluster)} * inter.leaves_per_group;
  const auto groups = static_cast<int>((cluster.nodes + below - 1) / below);
  const int ports = inter.leaves_per_group * inter.global_links;
  return {groups, inter.leaves_per_group, groups == 1 ? 1 : ports / (groups - 1)};
}

Expected<void> check_fabric(const Cluster& cluster) {
  const InterNodeKind kind = cluster.inter.kind;
  const bool torus = kind == InterNodeKind::torus;
  const bool dragonfly = kind == InterNodeKind::dragonfly;
  if (!torus && !dragonfly && kind != InterNodeKind::graph) return {};
  if (cluster.nodes > kMostNodes) {
    return failure("nodes",
                   fmt::format("found {} nodes; allowed: at most {} on a torus, dragonfly or graph",
                               cluster.nodes, kMostNodes));
  }
  if (torus) return check_torus(cluster);
  return dragonfly ? check_dragonfly(cluster) : check_graph(cluster);
}

}  // namespace trainyard
