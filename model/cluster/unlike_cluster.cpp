#include "model/cluster/unlike_cluster.h"

#include <algorithm>

namespace trainyard {

Cluster with_nodes(Cluster cluster, int nodes) {
  if (nodes != cluster.nodes) cluster.inter.dimensions.clear();
  cluster.nodes = nodes;
  return cluster;
}

BytesPerSecond nics_of_a_device(const Cluster& group) {
  const InterNode& inter = group.inter;
  return inter.bandwidth * (inter.efficiency * inter.nics_per_node / group.devices_per_node);
}

Boundary NamedBoundary::between(const Cluster& one, const Cluster& other) const {
  return {bandwidth.value_or(std::min(nics_of_a_device(one), nics_of_a_device(other))),
          latency.value_or(std::max(one.inter.latency, other.inter.latency))};
}

Boundary boundary_between(const UnlikeCluster& cluster, std::size_t a, std::size_t b) {
  return cluster.boundary.between(cluster.groups[a], cluster.groups[b]);
}

GroupLinks links_over(const Boundary& boundary, int groups) {
  return {.size = groups,
          .ranks_per_domain = 1,
          .domains = groups,
          .inside = boundary.bandwidth,
          .inside_pair = boundary.bandwidth,
          .across = boundary.bandwidth,
          .passing = boundary.bandwidth,
          .across_all_to_all = boundary.bandwidth,
          .way_out = boundary.bandwidth,
          .across_latency = boundary.latency};
}

}  // namespace trainyard
