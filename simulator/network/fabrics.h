// The fabrics on which the ranks of a step are: those of one cluster, or those of several groups of
// unlike nodes, side by side. Ranks and links count through the groups.
//
// Between groups a message goes from device to device. Where the bandwidth of the boundary is
// named, every device has a link of its own to the other groups; else the message leaves by the
// NICs of its sender and arrives by those of its receiver, and the network between them is never
// full.
#pragma once

#include <span>
#include <vector>

#include "model/cluster/topology_graph.h"
#include "model/cluster/unlike_cluster.h"
#include "simulator/network/fabric.h"

namespace trainyard {

// Nodes of one kind and the graph of their topology.
struct FabricGroup {
  const Cluster* cluster = nullptr;
  const TopologyGraph* topology = nullptr;
};

class Fabrics {
 public:
  // Fails as Fabric::make does, and where a device of several groups has neither a NIC nor a named
  // boundary. Requires: at least one group. The fabrics of several groups list all links.
  static Expected<Fabrics> make(std::span<const FabricGroup> groups,
                                const NamedBoundary& boundary = {},
                                FabricLinks links = FabricLinks::that_can_be_full);

  // Of every link: those of the first group's fabric, then of the next one's, and so on; at the
  // end, where the boundary's bandwidth is named, each device's link to other groups and back.
  std::span<const BytesPerSecond> capacities() const { return capacities_; }
  int devices() const { return devices_; }
  // The device's number in its domain.
  int place_of(int device) const;
  // As those of one Fabric. Between members of several groups the latency is the
  // boundary's.
  GroupLinks links_of(std::span<const std::int32_t> members) const;
  void append_way(std::span<const std::int32_t> members, int ranks_per_domain,
                  const TransferRound& round, const Transfer& transfer, std::vector<LinkUse>& uses);
  // Also false where there are several groups.
  bool append_alike(std::span<const std::int32_t> members, std::span<const LinkUse> known,
                    std::span<const std::int32_t> other, std::vector<LinkUse>& uses);

 private:
  struct Part {
    Fabric fabric;
    std::int32_t first_device = 0, first_link = 0;
    int first_domain = 0;
    const Cluster* cluster = nullptr;
  };

  std::size_t part_of(std::int32_t device) const;
  // The one part that has all members; none: they are in several.
  const Part* common_part(std::span<const std::int32_t> members) const;
  // The longest latency between any two groups that have members.
  Seconds latency_between(std::span<const std::int32_t> members) const;
  int domain_of(std::int32_t device) const;
  Expected<void> check_boundary() const;
  void append_between(std::int32_t from, std::int32_t to, const TransferRound& round,
                      std::vector<LinkUse>& uses);

  std::vector<Part> parts_;
  std::vector<BytesPerSecond> capacities_;
  NamedBoundary boundary_;
  int devices_ = 0;
  std::int32_t first_boundary_link_ = 0;
};

}  // namespace trainyard
