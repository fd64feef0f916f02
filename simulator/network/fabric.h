// The topology graph prepared for routing: every link in both directions, the links between any two
// members of a group, and which links can be full at all.
//
// Inside a domain a message takes the switch (or a mesh's direct link). Between domains it leaves
// by the NICs of its sender and arrives by those of its receiver, over the switches as
// model/cluster/routes.h routes it; in a rail-optimised fabric it first moves to the receiver's
// rail inside the sender's domain. Protocol efficiency becomes traffic: 1 / efficiency bytes for
// each byte on the links of NICs and switches, but not between a device and its PCIe root. A
// message may leave by the NICs of all members of its domain; the NVLink traffic to those NICs is
// charged for rings only, which load the NVLinks of all members alike.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "model/cluster/routes.h"
#include "model/cluster/topology.h"
#include "model/cost/messages/transfer_rounds.h"
#include "model/expected.h"
#include "simulator/network/degraded_links.h"
#include "simulator/network/flow_network.h"

namespace trainyard {

struct PreparedJob;  // model/job.h

// Multiplies the bandwidth of the links by their rate. Requires: 0 < rate.
void degrade(TopologyGraph& graph, const DegradedLinks& links);
// The topology of the job's cluster with all of these links degraded; without any, the job's own.
std::shared_ptr<const TopologyGraph> degraded_topology(const PreparedJob& job,
                                                       std::span<const DegradedLinks> links);

// The most ranks that divide every run of members in one domain.
template <typename DomainOf>
int ranks_together(std::span<const std::int32_t> members, const DomainOf& domain_of) {
  int common = 0;  // gcd of the lengths of the runs
  int run = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    ++run;
    const bool last = i + 1 == members.size();
    if (!last && domain_of(members[i + 1]) == domain_of(members[i])) continue;
    common = std::gcd(common, run);
    run = 0;
  }
  return common > 0 ? common : 1;
}

// Which links a fabric lists for a transfer: only those that traffic can fill, or all.
enum class FabricLinks { that_can_be_full, all };

class Fabric {
 public:
  // Fails when a device cannot be reached from rank 0, or a link has no bandwidth.
  static Expected<Fabric> make(const Cluster& cluster, const TopologyGraph& graph,
                               FabricLinks links = FabricLinks::that_can_be_full);

  // Of every link: 2e leads from the source to the target of the graph's e-th edge, 2e + 1 back.
  std::span<const BytesPerSecond> capacities() const { return capacities_; }
  int devices() const { return static_cast<int>(domain_.size()); }
  int domains() const { return static_cast<int>(domains_.size()); }
  int domain_of(int device) const { return domain_[static_cast<std::size_t>(device)]; }
  int place_of(int device) const {  // the device's number in its domain
    return place_[static_cast<std::size_t>(device)];
  }
  Seconds inside_latency() const { return inside_latency_; }
  Seconds across_latency() const { return across_latency_; }
  bool switched() const { return switched_; }

  // The size, domains and latencies of a group of these members, as algorithms need them for their
  // rounds. Its ranks_per_domain divides the members of every run in one domain.
  GroupLinks links_of(std::span<const std::int32_t> members) const;

  // Appends the links of a transfer: all, or those that can be full, as make() was told. A link
  // that the transfer passes twice occurs twice. Requires: ranks_per_domain is that of
  // links_of(members).
  void append_way(std::span<const std::int32_t> members, int ranks_per_domain,
                  const TransferRound& round, const Transfer& transfer, std::vector<LinkUse>& uses);

  // Appends the links from a device to the switches behind its NICs, or those back, for bytes that
  // the device sends to another fabric or receives from it.
  void append_leaving(int device, double overhead, std::vector<LinkUse>& uses) const;
  void append_arriving(int device, double overhead, std::vector<LinkUse>& uses) const;
  bool has_way_out(int device) const {
    return !ports_of(static_cast<std::uint32_t>(device)).empty();
  }

  // Given the links `known` that transfers between `members` use, appends those that the same
  // transfers between `other` use. Returns false if that needs the routes: it works where the two
  // groups' members have the same places in domains with the same links, one domain for one, and no
  // link between switches can be full.
  bool append_alike(std::span<const std::int32_t> members, std::span<const LinkUse> known,
                    std::span<const std::int32_t> other, std::vector<LinkUse>& uses);

 private:
  struct Step {
    std::uint32_t to = 0;
    std::int32_t link = 0;
  };
  static constexpr std::int32_t kNoLink = -1;
  // A way out of a domain: from a device, over its PCIe root if it has one, to a NIC and the switch
  // behind it. Links lead outwards; those back are link ^ 1.
  struct Port {
    std::uint32_t nic = 0;
    std::int32_t to_root = kNoLink, to_nic = kNoLink, to_switch = kNoLink;
  };
  // How a device is attached to its domain.
  struct Seat {
    std::uint32_t hub = 0;  // NVLink switch or PCIe root; Routes::kNone in a mesh
    std::int32_t to_hub = kNoLink;
    bool at_root = false;  // attached to a PCIe root
    std::uint32_t first_port = 0, ports = 0;
  };

  // A link's number among those of the domain that it begins or ends in.
  struct Slot {
    int domain = kNobody;
    std::int32_t index = 0;
  };
  static constexpr int kNobody = -1;

  Fabric(const Cluster& cluster, const TopologyGraph& graph);
  void read(const TopologyGraph& graph);
  void find_domains();
  Expected<void> check() const;
  std::vector<bool> reached_from_first() const;
  void find_full_links();
  void drop_unfilled_links();
  bool can_fill_between_switches() const;
  void drop_links_that_lead_to_less();
  double capacity_of(Step step) const;
  char& can_be_full(Step step) { return can_be_full_[static_cast<std::size_t>(step.link)]; }

  std::span<const Step> steps(std::uint32_t vertex) const;
  bool is(std::uint32_t vertex, VertexKind kind) const { return kinds_[vertex] == kind; }
  std::uint32_t first_of(std::uint32_t vertex, VertexKind kind) const;
  std::int32_t link(std::uint32_t from, std::uint32_t to) const;
  void seat_devices();
  void add_ports(std::uint32_t device, std::uint32_t root);
  std::span<const Port> ports_of(std::uint32_t device) const;
  std::span<const Port> ports_of(std::span<const std::int32_t> block, std::uint32_t device, Way way,
                                 std::vector<Port>& all) const;

  std::span<const std::int32_t> run_of(std::span<const std::int32_t> members, int member) const;
  void add(std::vector<LinkUse>& uses, std::int32_t link, double share) const {
    if (can_be_full_[static_cast<std::size_t>(link)] != 0) uses.push_back({link, share});
  }
  void add_inside(std::vector<LinkUse>& uses, std::uint32_t from, std::uint32_t to,
                  double share) const;
  void add_out(std::vector<LinkUse>& uses, const Port& port, double share) const;
  void add_in(std::vector<LinkUse>& uses, const Port& port, double share) const;
  void add_between(std::vector<LinkUse>& uses, const Port& from, const Port& to, double share);
  void append_between_switches(std::uint32_t from, std::uint32_t to, const TransferRound& round,
                               std::vector<LinkUse>& uses);
  void append_across(std::span<const std::int32_t> sending, std::uint32_t from,
                     std::span<const std::int32_t> receiving, std::uint32_t to,
                     const TransferRound& round, std::vector<LinkUse>& uses);
  void append_closing_hop(std::span<const std::int32_t> members, int last,
                          const TransferRound& round, std::vector<LinkUse>& uses) const;
  void append_inside(std::span<const std::int32_t> block, std::uint32_t from, std::uint32_t to,
                     const TransferRound& round, std::vector<LinkUse>& uses) const;
  void number_slots();
  void number_link(std::int32_t link, std::vector<double>& shape);
  bool takes_places(std::span<const std::int32_t> members, std::span<const std::int32_t> other);
  void append_up_and_down(std::uint32_t device, const TransferRound& round,
                          std::vector<LinkUse>& uses) const;

  std::vector<VertexKind> kinds_;
  std::vector<std::uint32_t> first_step_;
  std::vector<Step> steps_;
  std::vector<BytesPerSecond> capacities_;
  std::vector<char> can_be_full_;  // by link
  bool switches_can_fill_ = true;  // whether any link between two switches can be full
  std::vector<Seat> seats_;        // of each device
  std::vector<Port> ports_;
  std::vector<int> domain_;          // of each device
  std::vector<std::int32_t> place_;  // of each device in its domain
  std::vector<std::vector<std::uint32_t>> domains_;
  Seconds inside_latency_, across_latency_;
  double across_overhead_ = 1;
  bool rails_ = false;
  bool switched_ = true;
  Routes routes_;
  // For append_alike, once it was called: the slot of each link; the links of all domains and where
  // each domain's begin; the kind of each domain, the same for domains with the same links.
  std::vector<Slot> slots_;
  std::vector<std::int32_t> slot_links_;
  std::vector<std::size_t> first_slot_;
  std::vector<int> domain_kind_;
  // Scratch.
  // The domain of another group that takes a domain's place, and back.
  std::vector<int> taken_by_, takes_;
  std::vector<LinkUse> between_;
  std::vector<Port> out_, in_;
};

}  // namespace trainyard
