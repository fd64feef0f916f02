// Bandwidths of process groups on a fabric whose links between switches no subtree describes
// (torus, dragonfly, graph, static routing): all sibling groups of a shape send at once over the
// routes that the simulator takes, and the fullest link sets the rate. Computed once for each
// shape.
//
// Rings are exact. Messages to partners at distance 1, 2, 4, … and down trees are counted one by
// one, up to kMostPairs of them (in a torus kMostInTorus for each rank of a domain). With more, a
// torus is routed dimension by dimension, and static routes by hash are replaced by even shares,
// which many flows nearly have. A round lasts as long as for the slowest sibling, though siblings
// under less load may be ahead.
// All-to-alls are summed by pairs of switches: exact up to kMostPairs pairs (a torus is routed
// dimension by dimension from kMostInTorus on). With more, a sample of distances, spread evenly
// over the group, stands for all, and hashes are replaced by even shares.
// In a torus one group stands for all that its symmetry maps onto it (torus_symmetry.h).
//
// The loads are kept, so that it can be told which links groups of two shapes have in common
// (link_loads.h). Of pipelines the times of messages between neighbours are counted too (HopTimes).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/crowding.h"
#include "model/cluster/group.h"
#include "model/cluster/known_rates.h"
#include "model/cluster/link_counter.h"
#include "model/cluster/link_loads.h"
#include "model/cluster/routes.h"
#include "model/cluster/topology.h"
#include "model/cluster/torus_symmetry.h"
#include "model/cluster/tree_hops.h"

namespace trainyard {

// Rates between domains, protocol efficiency taken off; infinite where nothing leaves the domains.
struct GroupRates {
  BytesPerSecond ring;                     // of a whole ring in rank order (r·GroupLinks::across)
  BytesPerSecond passing;                  // as GroupLinks::passing
  BytesPerSecond all_to_all;               // as GroupLinks::across_all_to_all
  std::optional<CrossingTimes> times;      // none: those computed from the tiers hold
  std::shared_ptr<const LinkLoads> loads;  // of links between switches
};

// Adds up the bytes that every link carries. A value with its own scratch memory.
class GroupRouter {
 public:
  static constexpr std::size_t kMostPairs = 1 << 16;
  static constexpr std::size_t kMostInTorus = 1 << 12;

  // Requires: `graph` and `tiers` are of the cluster; there is at least one tier.
  GroupRouter(const Cluster& cluster, const TopologyGraph& graph, const FabricTiers& tiers);

  // `members`: members_within() a domain. `among`: the ranks whose groups talk at once.
  GroupRates compute(GroupShape shape, int members, RankRange among = {});
  // None: groups of the shape have unlike parts in domains, or domains unlike NICs. Requires: the
  // groups leave their domains.
  std::optional<HopTimes> hop_times(GroupShape shape, int members);

 private:
  using Ranks = std::span<const int>;
  // The groups of one shape.
  struct Siblings {
    std::vector<int> ranks;  // one group after the other
    std::size_t size = 1;    // ranks of each group
    std::size_t copies = 1;  // groups that each of them stands for (torus symmetry)
    std::size_t count() const { return ranks.size() / size; }
    std::size_t all() const { return count() * copies; }
    Ranks operator[](std::size_t group) const { return Ranks(ranks).subspan(group * size, size); }
  };
  struct Nic {
    std::uint32_t vertex = 0, leaf = 0;  // leaf: the switch that it hangs on
    std::int32_t link = -1;              // from the NIC to its leaf; link ^ 1 is the way back
  };
  // The switches of a group and how many of its members hang on each.
  using Census = std::vector<std::pair<std::uint32_t, double>>;

  void read_nics(const Cluster& cluster, const TopologyGraph& graph);
  int domain_of(int rank) const { return rank / ranks_per_domain_; }
  std::span<const Nic> nics_of(int rank) const;
  std::vector<Nic> nics_of(Ranks ranks) const;
  Siblings siblings(GroupShape shape, RankRange among) const;
  void fold(Siblings& groups);
  // By link, the link that stands for it.
  using Folded = std::vector<std::int32_t>;
  bool fold_links(const TorusSymmetry& symmetry, Folded& folded) const;
  bool fold_switch(int node, int first, Folded& folded) const;
  bool fold_nics(int node, int first, Folded& folded) const;
  bool fold_link(std::int32_t link, std::int32_t first, Folded& folded) const;

  // Bytes from one switch to another.
  struct Sent {
    std::uint32_t from = 0, to = 0;
    double bytes = 0;
  };
  static std::pair<std::uint32_t, std::uint32_t> ends(const Sent& sent) {
    return {sent.from, sent.to};
  }
  // Whose NICs the messages between two domains take; between_switches: none are counted.
  enum class Sending { every_member, first_members, all_together, between_switches };
  std::optional<CrossingTimes> crossing_times(const Siblings& groups, int members,
                                              LinkLoads::ByPattern& loads);
  double trees_time(const Siblings& groups, int members, LinkLoads::Loads& loads);
  double round_time(const Siblings& groups, int members, const TreeHops& hops, Sending sending);
  void send_hop(Ranks group, int members, const TreeHop& hop, Sending sending);
  void send_own(int from, int to, double bytes);

  Ranks run_from(Ranks group, std::size_t first) const;
  void send_ring(Ranks group);
  double all_to_all_time(const Siblings& groups, LinkLoads::Loads& loads);
  std::vector<double> passing_times(const Siblings& groups, int members, std::size_t hops);
  void pass_on(Ranks group, int members);
  void pass_hop(Ranks group, int members, std::size_t hop);
  void send_to_mirrors(Ranks group);
  void send_all_to_all(Ranks group);
  void load_all_to_all(Ranks group);
  void load_rails(Ranks group, Ranks inside, double part);
  void load(std::span<const Nic> nics, bool inwards, double bytes);
  void send_by_switches(const Siblings& groups);
  Census census_of(Ranks ranks) const;
  void send_between_switches(const Census& census, double bytes, std::size_t most);
  void send_around(const Census& census, std::size_t distance, double bytes);
  void send(std::span<const Nic> out, std::span<const Nic> in, double bytes);
  void load_nics(std::span<const Nic> out, std::span<const Nic> in, double bytes);
  void load_switches(std::span<const Nic> out, std::span<const Nic> in, double bytes);
  void send_later(const Sent& sent);
  void route_between();
  int leaving_for(int from, int to) const;

  InterNodeKind kind_;
  int devices_ = 0, ranks_per_domain_ = 1;
  TorusNodes torus_;
  double out_of_domain_ = 0;  // seconds a byte out of a domain takes if every rank sends one
  double out_alone_ = 0;      // … if one device sends alone
  bool one_link_ = false;     // as in FabricTiers
  bool unlike_nics_ = false;  // as in FabricTiers
  LinkCounter counter_;
  Routes routes_;
  Routes even_routes_;                  // the same fabric without hashes (evenly_routed())
  bool counted_evenly_ = false;         // even_routes_ are in use
  bool straddling_ = false;             // the current shape straddles domains, or NICs are unlike
  std::vector<std::size_t> first_nic_;  // by rank, its first one in nics_
  std::vector<Nic> nics_;               // of all ranks, one rank after the other
  std::vector<LinkUse> uses_;           // scratch
  std::vector<Sent> between_;           // waits for route_between()
};

// GroupRouter's rates, kept by shape. Threads that ask for a new shape at once compute the same
// rates.
class RoutedGroups {
 public:
  // Requires: as GroupRouter.
  RoutedGroups(const Cluster& cluster, const TopologyGraph& graph, const FabricTiers& tiers)
      : router_(cluster, graph, tiers) {}
  ~RoutedGroups();
  RoutedGroups(const RoutedGroups&) = delete;
  RoutedGroups& operator=(const RoutedGroups&) = delete;

  const GroupRates& rates(GroupShape shape, int members);
  // Null: as GroupRouter::hop_times(), which also says what it requires.
  const HopTimes* hop_times(GroupShape shape, int members);

 private:
  // Calls `compute` with a router that no other thread uses.
  template <typename Compute>
  auto with_router(Compute compute);

  const GroupRouter router_;
  std::atomic<GroupRouter*> idle_ = nullptr;  // a copy of router_ that no thread is using
  KnownRates<GroupShape, GroupRates> known_;
  KnownRates<GroupShape, std::optional<HopTimes>> known_hops_;
};

}  // namespace trainyard
