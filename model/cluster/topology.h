// The cluster as a graph (Boost.Graph): devices, NVLink switches, NICs, leaf and spine switches as
// vertices, links with bandwidth (per direction) and latency as edges; and what the cost model
// needs of it, the *tiers*: at each level of the hierarchy how many ranks share a subtree and how
// much bandwidth leaves it. Tiers are the cuts of the graph's subtrees, never typed in, so a user
// never states an "effective" bandwidth. Handbook §6, "which links".
//
// Assumes ranks are placed in order: rank r is device r mod devices_per_node of node r /
// devices_per_node. Fabrics without nested subtrees (torus, dragonfly, graph) have one tier, the
// NVLink domain; what is between domains is routed (model/cluster/routed_groups.h).
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
// one vertex, as what they carry is limited by these; with static routing each uplink has a spine
// to itself. Switches of a torus, dragonfly or graph are leaves.
// Requires: check_fabric(cluster) (model/cluster/fabric_shape.h), devices_per_node and nodes
// positive, an inter-node kind (with NICs) when there is more than one domain; nvlink-mesh and PCIe
// end at the node.
TopologyGraph make_topology(const Cluster& cluster);

// The topology of a cluster, made when it is first asked for: of a million nodes that takes
// seconds, and an estimate needs no graph of most fabrics. Threads may ask at once.
class LazyTopology {
 public:
  explicit LazyTopology(Cluster cluster) : cluster_(std::move(cluster)) {}
  std::shared_ptr<const TopologyGraph> graph();

 private:
  Cluster cluster_;
  // Of threads that ask at once that of the first.
  std::atomic<std::shared_ptr<const TopologyGraph>> graph_;
};

// One level of the hierarchy: `ranks` devices share a subtree; each has `way_out` to leave it when
// all of them do at once, and a step between two subtrees costs `latency`.
struct Tier {
  int ranks = 1;
  BytesPerSecond way_out;  // per rank, out of this tier's subtree, protocol efficiency taken off
  Seconds latency;         // α of a message step that leaves it
};
// The NICs that a device sends a message of its own by: its own ones, those of all devices that
// share them, all of the node's behind a PCIe root. Protocol efficiency taken off.
struct DeviceNics {
  int ranks = 1;           // devices that share them
  BytesPerSecond way_out;  // per rank, when all of these send
  BytesPerSecond alone;    // most that one of them has
};
class RoutedGroups;
class StraddlingGroups;
struct FabricTiers {
  int devices = 0;
  BytesPerSecond inside;       // per device, within an NVLink domain
  BytesPerSecond inside_pair;  // between two devices of a domain
  Seconds inside_latency;
  bool switched = true;     // the domain is an NVLink switch
  bool one_link = false;    // … a PCIe root: the link inside is the way out too
  std::vector<Tier> tiers;  // from the NVLink domain outwards; empty: one domain holds everything
  DeviceNics nics;
  bool unlike_nics = false;  // some of a node's devices share one, or have more, than others
  bool rails = false;        // what leaves by a NIC stays on the switches of its rail
  Seconds small_latency;     // between domains, of the protocol for small messages
  double small_share = 0;
  std::shared_ptr<RoutedGroups> routed;          // where tiers do not tell all; else none
  std::shared_ptr<StraddlingGroups> straddling;  // of trees that are not routed; else none
};
// Whether links between switches carry what no subtree's cut tells.
bool is_routed(const InterNode& inter);
FabricTiers fabric_tiers(const Cluster& cluster, const TopologyGraph& graph);
// Of its topology. Where no traffic is routed no graph is made: the subtrees of a tree are alike
// but for the last ones, so the cuts are sums over one domain and one row of leaves, however many
// nodes there are.
FabricTiers fabric_tiers(const Cluster& cluster);

// What the members of a group have between them, all sibling groups talking at once. O(tiers),
// where subtrees have less to leave them than domains as crossing_times(); allocates nothing. On a
// routed fabric that is the second call for a shape.
//
// With R ranks in a subtree, r of them members and `w` the way out of each, R/r sibling groups
// share R·w, so a group has r·w. A ring in rank order passes each boundary once: its rate is the
// least r·w over the tiers it leaves. In an all-to-all the share (n − r)/n of every member's data
// leaves, each at w. So oversubscription above the leaf slows an all-to-all at once, and a ring
// only when few of its members share a leaf. Who sends to the second, fourth, … domain
// (model/cluster/crowding.h) crosses it more often.
// A message of a member's own to the next one in another domain takes that member's NICs, of whose
// ranks all groups' last members are the senders: r·w with their ranks and `w` too.
// Where group and subtree do not divide each other, the groups that straddle are unlike. Above
// domains those that really cross the end of a subtree share its R·w (straddling()); what leaves a
// domain is counted NIC by NIC (model/cluster/straddling_groups.h): a ring leaves by all NICs of
// the members that it has met there, so that the domain with the fewest sets its rate; other
// algorithms have blocks of as many members as every part of a group is made of (their greatest
// common divisor). So it is where a node's devices have unlike NICs. That too is the second call.
GroupLinks group_links(const FabricTiers& tiers, GroupShape group);
// The same where the groups of that shape among these ranks talk and all other ranks are silent.
// On a routed fabric the others talk too, unless these ranks lie in one domain. Requires: the range
// is shared out by groups of that shape.
GroupLinks group_links(const FabricTiers& tiers, GroupShape group, RankRange among);

}  // namespace trainyard
