// A cluster of equal nodes: devices, the links inside a node (and inside an NVLink domain, which
// may span nodes: NVL72), and the fabric between nodes. Bandwidths are per direction: per device
// inside, per NIC outside.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster/device.h"
#include "model/units.h"

namespace trainyard {

enum class InterNodeKind { none, fat_tree, rail, dragonfly, torus, graph };

// Which of the ways between two NICs their traffic takes (model/cluster/routes.h).
enum class FabricRouting {
  adaptive,      // all shortest ones, evenly: packets go where there is room
  static_paths,  // one of them for each pair of NICs: by hash (ECMP); in a torus dimension by
                 // dimension
  valiant        // dragonfly: over every third group, evenly
};

// What a cable of a fabric drawn by hand ends in.
struct FabricEnd {
  bool node = false;  // else a switch
  int index = 0;
  friend bool operator==(const FabricEnd&, const FabricEnd&) = default;
};
// One cable, or a bundle of them, of a fabric drawn by hand.
struct FabricLink {
  FabricEnd from, to;
  BytesPerSecond bandwidth;
};

struct IntraNode {
  IntraNodeKind kind = IntraNodeKind::nvswitch;
  BytesPerSecond bandwidth;  // per device
  Seconds latency{3e-6};     // α of one message step
};

struct InterNode {
  InterNodeKind kind = InterNodeKind::none;
  int nics_per_node = 0;
  BytesPerSecond bandwidth;     // per NIC
  double oversubscription = 1;  // above the leaf
  int nodes_per_leaf = 32;   // nodes below one leaf switch (rail: below one set of rail switches)
  double efficiency = 0.85;  // attained share of the NICs' sum
  Seconds latency{12e-6};    // α of one message step across nodes
  // A second protocol, for small messages (NCCL's LL and LL128 beside Simple): a shorter step at a
  // share of the bandwidth. 0: there is one protocol.
  Seconds small_latency;
  double small_share = 0;
  FabricRouting routing = FabricRouting::adaptive;
  BytesPerSecond link_bandwidth;  // torus, dragonfly: of a link between switches; 0: from the NICs
  // Torus: nodes along each; empty: three, as near to a cube as it goes.
  std::vector<int> dimensions;
  int leaves_per_group = 0;           // dragonfly: switches of a group, all linked with each other
  int global_links = 0;               // dragonfly: of one switch, to other groups
  std::vector<std::string> switches;  // graph
  std::vector<FabricLink> links;      // graph
};

struct Cluster {
  std::string name;
  Device device;
  int devices_per_node = 0;
  int nodes = 0;
  IntraNode intra;
  InterNode inter;
  int nvlink_domain = 0;                        // devices that reach each other at NVLink speed
  std::optional<Bytes> host_memory;             // a node's; nothing: unknown, taken to be enough
  BytesPerSecond host_memory_bandwidth{200e9};  // a node's, for an optimizer on the host
  BytesPerSecond nvme_bandwidth{12e9};          // a node's
  double pue = 1.2;                             // power usage effectiveness, for energy
  double memory_share = 1;  // of a device's memory that plans may take: below 1, room is left

  int devices() const { return devices_per_node * nodes; }
  Bytes usable_memory() const { return device.memory * memory_share; }
};

// Of a device, and of the hosts of a node.
struct MemoryUse {
  Bytes device, hosts;
};

// Of what there is, the fuller of both: above 1 it does not fit.
inline double fullness(const Cluster& cluster, const MemoryUse& use) {
  const double hosts = cluster.host_memory ? use.hosts / *cluster.host_memory : 0;
  return std::max(use.device / cluster.usable_memory(), hosts);
}

}  // namespace trainyard
