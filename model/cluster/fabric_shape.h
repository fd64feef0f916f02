// The sizes of fabrics that are no tree, and what no fabric can be made of. A torus has one switch
// a node and neighbours along every dimension (Dally & Towles 2004, ch. 5); a dragonfly groups of
// switches that are all linked with each other, and links between every two groups (Kim, Dally,
// Scott & Abts 2008).
#pragma once

#include <vector>

#include "model/cluster/cluster.h"
#include "model/expected.h"

namespace trainyard {

// Nodes along each dimension, as asked for or the most even three whose product is `nodes`.
std::vector<int> torus_dimensions(const Cluster& cluster);
// What a link between neighbours has: its own figure, or the node's NICs over its neighbours.
BytesPerSecond torus_link_bandwidth(const Cluster& cluster);

struct DragonflyShape {
  int groups = 1;
  int leaves = 1;         // switches of a group
  int links_between = 1;  // any two groups
};
DragonflyShape dragonfly_shape(const Cluster& cluster);

// Nodes below one leaf: whole NVLink domains, so that the hierarchy nests.
int nodes_below_leaf(const Cluster& cluster);
// Nodes of one NVLink domain: the most that fit, in equal segments, or in such that leave the last
// one the most nodes (41: 14, 14 and 13), where that wastes less than half of a domain.
int nodes_per_domain(const Cluster& cluster);

// One line on a fabric that cannot be: a torus of another number of nodes, a dragonfly with more
// groups than its links reach, a graph with a node or a rank that nothing leads to.
// Requires: devices_per_node and nodes positive.
Expected<void> check_fabric(const Cluster& cluster);

}  // namespace trainyard
