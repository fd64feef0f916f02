// The cluster as a graph (Boost.Graph): devices, NVLink switches, NICs, leaf and spine switches as
// vertices, links with bandwidth (per direction) and latency as edges. And its *tiers*, all that
// the cost model needs of most fabrics: at each level of the hierarchy, how many ranks share a
// subtree and how much bandwidth leaves it. Tiers are cuts of the graph, never typed in, so a user
// never states an "effective" bandwidth. Handbook §6, "which links".
//
// Example: nodes of 8 devices with 8 NICs of 50 GB/s, 32 nodes below a leaf, oversubscription 2:
// tiers of 8 ranks with 50 GB/s a rank and of 256 ranks with 25, times the protocol's efficiency.
//
// Assumes ranks are placed in order: rank r is device r mod devices_per_node of node r /
// devices_per_node. Fabrics without nested subtrees (torus, dragonfly, graph) have one tier, the
// NVLink domain; traffic between domains is routed (model/cluster/routed_groups.h).
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/group.h"
#include "model/units.h"

namespace trainyard {

// `host`: the PCIe root that devices and NICs share when there is no NVLink.
enum class VertexKind { device, nvlink_switch, host, nic, leaf, spine };
struct Vertex {
  VertexKind kind = VertexKind::device;
  int index = 0;  // within its kind
  int node = -1;  // the node it belongs to; −1: an NVLink domain's switch or the fabric
};
struct Link {
  BytesPerSecond bandwidth;  // per direction
  Seconds latency;
};
struct TopologyGraph;  // model/cluster/topology_graph.h, for those who walk over it

// Vertices 0 … devices−1 are the devices in rank order. Linear in the number of devices.
//
// An NVLink domain that spans nodes (NVL72) is filled by equal segments of whole nodes, as
// schedulers place jobs (256 devices: four domains of 64), or nearly equal ones (nodes_per_domain).
// A fat tree has all NICs of a node on one leaf; a rail-optimised fabric has NIC i of every node on
// leaf i of its pod, and traffic between unlike indices changes rail inside the node. Leaves have
// uplinks for as many nodes as they have room for, the part-filled last ones too. All spines are
// one vertex, since the uplinks limit what they carry; with static routing each uplink has a spine
// to itself. Switches of a torus, dragonfly or graph are leaves.
// Requires: check_fabric(cluster) (model/cluster/fabric_shape.h), devices_per_node and nodes
// positive, an inter-node kind (with NICs) when there is more than one domain; nvlink-mesh and PCIe
// end at the node.
TopologyGraph make_topology(const Cluster& cluster);

// The topology of a cluster, made when it is first asked for: for a million nodes that takes
// seconds, and on most fabrics an estimate needs no graph. Threads may ask at once.
class LazyTopology {
 public:
  explicit LazyTopology(Cluster cluster) : cluster_(std::move(cluster)) {}
  std::shared_ptr<const TopologyGraph> graph();

 private:
  Cluster cluster_;
  // Threads that ask at once all get the graph of the one that makes it first.
  std::atomic<std::shared_ptr<const TopologyGraph>> graph_;
};

// One level of the hierarchy: `ranks` devices share a subtree; each has `way_out` to leave it when
// all of them do at once, and a step between two subtrees costs `latency`.
struct Tier {
  int ranks = 1;
  BytesPerSecond way_out;  // per rank, out of this tier's subtree, protocol efficiency taken off
  Seconds latency;         // α of a message step that leaves it
};
// The NICs over which a device sends its own messages: those that hang on it alone, those that it
// shares with other devices, or, behind a PCIe root, all of the node's. Protocol efficiency taken
// off.
struct DeviceNics {
  int ranks = 1;           // devices that share them
  BytesPerSecond way_out;  // per rank, when all of these devices send
  BytesPerSecond alone;    // of one device that sends alone, at most
};
class RoutedGroups;
class StraddlingGroups;
struct FabricTiers {
  int devices = 0;
  BytesPerSecond inside;       // per device, within an NVLink domain
  BytesPerSecond inside_pair;  // between two devices of a domain
  Seconds inside_latency;
  bool switched = true;     // the domain is an NVLink switch
  bool one_link = false;    // the domain is a PCIe root: the link inside is the way out too
  std::vector<Tier> tiers;  // from the NVLink domain outwards; empty: one domain holds everything
  DeviceNics nics;
  bool unlike_nics = false;  // a node's devices have unequal NICs: more, or shared with others
  bool rails = false;        // traffic stays on the switches of the NIC's rail
  Seconds small_latency;     // between domains, of the protocol for small messages
  double small_share = 0;
  std::shared_ptr<RoutedGroups> routed;          // set where is_routed()
  std::shared_ptr<StraddlingGroups> straddling;  // set for trees that are not routed
};
// Whether the load of links between switches does not follow from the cuts of subtrees, but has to
// be counted along routes: torus, dragonfly, graph, static routing.
bool is_routed(const InterNode& inter);
FabricTiers fabric_tiers(const Cluster& cluster, const TopologyGraph& graph);
// The tiers of the cluster's topology. The graph is made only where traffic is routed: the subtrees
// of a tree are alike but for the last ones, so its cuts are sums over one domain and one row of
// leaves, however many nodes there are.
FabricTiers fabric_tiers(const Cluster& cluster);

// The links of a group, all sibling groups communicating at once. O(tiers); where subtrees have
// less bandwidth out than their domains, as crossing_times(). Allocates nothing, but on a routed
// fabric and for straddling groups in the first call for a shape.
//
// With R ranks in a subtree, r of them members and `w` the way out of each, R/r sibling groups
// share R·w, so a group has r·w. A ring in rank order passes each boundary once: its rate is the
// least r·w over the tiers it leaves. In an all-to-all the share (n − r)/n of every member's data
// leaves, each at w. So oversubscription above the leaf slows an all-to-all at once, and a ring
// only when few of its members share a leaf. Algorithms that send to the second, fourth, … domain
// (model/cluster/crowding.h) cross the boundary more often.
// A member's own message to the next one in another domain takes that member's NICs. If R ranks
// share these NICs, r of them members, each of the R/r groups has one sender there: again r·w.
//
// Where group and subtree do not divide each other, sibling groups load a boundary unequally. Above
// domains, the groups that really cross the end of a subtree share its R·w (straddling()). Out of
// domains, NICs are counted one by one (model/cluster/straddling_groups.h), as they are where a
// node's devices have unlike NICs: a ring leaves by the NICs of all members in the domain, so the
// domain with the fewest sets its rate; other algorithms use blocks of members_within() members.
GroupLinks group_links(const FabricTiers& tiers, GroupShape group);
// For GroupLinks::hops, which group_links() leaves null; null on fabrics that are not routed,
// inside a domain, and where groups have unlike parts in domains.
const HopTimes* hop_times(const FabricTiers& tiers, GroupShape group);
// The links where the groups of that shape among these ranks talk, and all other ranks are silent.
// On a routed fabric the others talk too, unless these ranks lie in one domain. Requires: the range
// is shared out by groups of that shape.
GroupLinks group_links(const FabricTiers& tiers, GroupShape group, RankRange among);

}  // namespace trainyard
