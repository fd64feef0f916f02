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
  adaptive,      // all shortest ways, evenly: packets go where there is room
  static_paths,  // one shortest way for each pair of NICs: by hash (ECMP); in a torus dimension by
                 // dimension
  valiant        // dragonfly: by way of a third group, evenly over all of them
};

// One end of a cable in a fabric drawn by hand.
struct FabricEnd {
  bool node = false;  // whether it is a node; else a switch
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
  double oversubscription = 1;  // bandwidth into a leaf over bandwidth out of it
  int nodes_per_leaf = 32;   // nodes below one leaf switch (rail: below one set of rail switches)
  double efficiency = 0.85;  // attained share of the NICs' bandwidth (protocol)
  Seconds latency{12e-6};    // α of one message step across nodes
  // A second protocol for small messages (NCCL's LL and LL128 beside Simple): its α of a step, and
  // its share of the bandwidth. A share of 0: there is only one protocol.
  Seconds small_latency;
  double small_share = 0;
  FabricRouting routing = FabricRouting::adaptive;
  BytesPerSecond link_bandwidth;  // torus, dragonfly: of a link between switches; 0: from the NICs
  // Torus: nodes along each dimension; empty: three dimensions, as near to a cube as possible.
  std::vector<int> dimensions;
  int leaves_per_group = 0;           // dragonfly: switches of a group, all linked with each other
  int global_links = 0;               // dragonfly: links of one switch to other groups
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
  std::optional<Bytes> host_memory;             // a node's; absent: unknown, taken to be enough
  BytesPerSecond host_memory_bandwidth{200e9};  // a node's, for an optimizer on the host
  BytesPerSecond nvme_bandwidth{12e9};          // a node's
  double pue = 1.2;                             // power usage effectiveness, for energy
  double memory_share = 1;                      // share of a device's memory that plans may use

  int devices() const { return devices_per_node * nodes; }
  Bytes usable_memory() const { return device.memory * memory_share; }
};

// Memory in use on a device, and on the host of a node.
struct MemoryUse {
  Bytes device, hosts;
};

// Used share of the device's or the host's memory, the larger; above 1 it does not fit.
inline double fullness(const Cluster& cluster, const MemoryUse& use) {
  const double hosts = cluster.host_memory ? use.hosts / *cluster.host_memory : 0;
  return std::max(use.device / cluster.usable_memory(), hosts);
}

}  // namespace trainyard
