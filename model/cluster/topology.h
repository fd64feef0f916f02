// The cluster as a graph (Boost.Graph): devices, NVLink switches, NICs, leaf and spine switches as
// vertices, links with bandwidth (per direction) and latency as edges; and what the cost model
// needs of it, the *tiers*: at each level of the hierarchy how many ranks share a subtree and how
// much bandwidth leaves it. Tiers are read off the graph (minimum cut of a subtree), never typed
// in, so a user never states an "effective" bandwidth. Handbook §6, "which links".
//
// Assumes ranks are placed in order: rank r is device r mod devices_per_node of node r /
// devices_per_node.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/group.h"
#include "model/units.h"

namespace trainyard {

enum class VertexKind { device, switch_inside, nic, leaf, spine };
struct Vertex {
  VertexKind kind = VertexKind::device;
  int index = 0;  // within its kind
  int node = -1;  // the node it belongs to; −1: fabric
};
struct Link {
  BytesPerSecond bandwidth;  // per direction
  Seconds latency;
};
using TopologyGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Vertex, Link>;

// Vertices 0 … devices−1 are the devices in rank order.
TopologyGraph make_topology(const Cluster& cluster);

// One level of the hierarchy: `ranks` devices share a subtree; each has `way_out` to leave it when
// all of them do at once, and a step between two subtrees costs `latency`.
struct Tier {
  int ranks = 1;
  BytesPerSecond way_out;  // per rank, out of this tier's subtree
  Seconds latency;         // α of a message step that leaves it
};
struct FabricTiers {
  int devices = 0;
  BytesPerSecond inside;  // per device, within an NVLink domain
  Seconds inside_latency;
  bool switched = true;
  std::vector<Tier> tiers;  // from the NVLink domain outwards; empty: one domain holds everything
  bool rails = false;       // devices of equal index share a leaf
};
FabricTiers fabric_tiers(const Cluster& cluster, const TopologyGraph& graph);

// What the members of a group have between them, all sibling groups talking at once. Allocates
// nothing.
GroupLinks group_links(const FabricTiers& tiers, GroupShape group);

}  // namespace trainyard
