// Sizes of fabrics that are no tree, sizes of NVLink domains and leaves, and the check of whether a
// fabric can exist. A torus has one switch for each node, linked with its neighbours along every
// dimension (Dally & Towles 2004, ch. 5). A dragonfly has groups of switches that are all linked
// with each other, and links between every two groups (Kim, Dally, Scott & Abts 2008).
#pragma once

#include <vector>

#include "model/cluster/cluster.h"
#include "model/expected.h"

namespace trainyard {

// Nodes along each dimension: as given, else three as even as their product, `nodes`, allows.
std::vector<int> torus_dimensions(const Cluster& cluster);
// Bandwidth of a link between neighbours: as given, else that of a node's NICs over its neighbours.
BytesPerSecond torus_link_bandwidth(const Cluster& cluster);

struct DragonflyShape {
  int groups = 1;
  int leaves = 1;         // switches of a group
  int links_between = 1;  // between any two groups
};
DragonflyShape dragonfly_shape(const Cluster& cluster);

// Nodes below one leaf: whole NVLink domains, at least one, so that the hierarchy nests.
int nodes_below_leaf(const Cluster& cluster);
// Nodes of one NVLink domain: the most, up to the domain's room, that cut the cluster into equal
// domains. If no number above half of the room does, the one whose last, smaller domain has the
// most nodes (41 nodes, room for 18: 14, 14 and 13).
int nodes_per_domain(const Cluster& cluster);

// Fails, with one line, for a fabric that cannot exist: a torus whose dimensions do not give the
// number of nodes, a dragonfly with more groups than its links reach, a graph with a node that no
// link reaches; and for fabrics too large to route.
// Requires: devices_per_node and nodes positive.
Expected<void> check_fabric(const Cluster& cluster);

}  // namespace trainyard
