// A cluster of groups of unlike nodes (device generations), and what connects two of its groups.
#pragma once

#include <optional>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/group.h"
#include "model/units.h"

namespace trainyard {

// The connection of two groups, for each device.
struct Boundary {
  BytesPerSecond bandwidth;  // each direction
  Seconds latency;
};

// What is known of the connections between groups, whichever two they are.
struct NamedBoundary {
  // Bandwidth of a device to another group, each direction; absent: a device's share of the NICs,
  // in the group where that is less.
  std::optional<BytesPerSecond> bandwidth;
  std::optional<Seconds> latency;  // absent: the longer one of the two fabrics

  Boundary between(const Cluster& one, const Cluster& other) const;
};

struct UnlikeCluster {
  std::vector<Cluster> groups;  // two or more
  NamedBoundary boundary;
};

Boundary boundary_between(const UnlikeCluster& cluster, std::size_t a, std::size_t b);

// A cluster of `nodes` such nodes. A torus of another size is as near to a cube as its nodes
// divide.
Cluster with_nodes(Cluster cluster, int nodes);

// A device's share of the bandwidth of its node's NICs.
BytesPerSecond nics_of_a_device(const Cluster& group);

// The links of devices of `groups` groups, one of each.
GroupLinks links_over(const Boundary& boundary, int groups = 2);

}  // namespace trainyard
