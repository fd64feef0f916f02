// What process groups have on a fabric without nested subtrees (torus, dragonfly, graph, static
// routing): all sibling groups of a shape send at once over the routes that the simulator takes,
// and the fullest link sets the rate. Computed once a shape and kept.
//
// Exact for rings. What sends to partners at distance 1, 2, 4, … or down a tree is counted message
// by message, up to kMostPairs of them (in a torus kMostInTorus); beyond them a torus is counted
// dimension by dimension and a hash as even shares. Every round lasts as long as it does for the
// slowest sibling: where siblings meet unlike loads, one may be ahead of that. An all-to-all is
// counted switch by switch (in a torus beyond kMostInTorus pairs dimension by dimension): exact up
// to kMostPairs pairs. Beyond them, some distances, spread evenly over the group, stand for all of
// them, and a hash is taken to give each way an even share, as it nearly does with many flows. In a
// torus one group stands for all that lie to the links as it does.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/crowding.h"
#include "model/cluster/group.h"
#include "model/cluster/known_rates.h"
#include "model/cluster/routes.h"
#include "model/cluster/topology.h"
#include "model/cluster/torus_symmetry.h"
#include "model/cluster/tree_hops.h"

namespace trainyard {

// Protocol efficiency taken off; infinite where nothing leaves the domains.
struct GroupRates {
  BytesPerSecond ring;                 // of a whole ring in rank order between two domains
  BytesPerSecond passing;              // of messages from members to the next in another domain
  BytesPerSecond all_to_all;           // per member, of what it sends out of its domain
  std::optional<CrossingTimes> times;  // nothing: those of the tiers
};

// Counts what every link carries; a value with its own scratch.
class GroupRouter {
 public:
  static constexpr std::size_t kMostPairs = 1 << 16;
  static constexpr std::size_t kMostInTorus = 1 << 12;  // of its nodes

  // Requires: as Routes; `tiers` of the cluster, with one at least.
  GroupRouter(const Cluster& cluster, const TopologyGraph& graph, const FabricTiers& tiers);

  // `members`: of the group in each domain. `among`: the ranks whose groups talk at once.
  GroupRates compute(GroupShape shape, int members, RankRange among = {});

 private:
  using Ranks = std::span<const int>;
  // The groups of one shape, one after the other.
  struct Siblings {
    std::vector<int> ranks;
    std::size_t size = 1;    // of each
    std::size_t copies = 1;  // groups that each of them stands for
    std::size_t count() const { return ranks.size() / size; }
    std::size_t all() const { return count() * copies; }
    Ranks operator[](std::size_t group) const { return Ranks(ranks).subspan(group * size, size); }
  };
  struct Nic {
    std::uint32_t vertex = 0, leaf = 0;  // leaf: the switch that it hangs on
    std::int32_t link = -1;              // from it to there
  };
  // The switches of a group and how many members hang on each.
  using Census = std::vector<std::pair<std::uint32_t, double>>;

  void read_nics(const Cluster& cluster, const TopologyGraph& graph);
  int domain_of(int rank) const { return rank / ranks_per_domain_; }
  std::span<const Nic> nics_of(int rank) const;
  std::vector<Nic> nics_of(Ranks ranks) const;
  Siblings siblings(GroupShape shape, RankRange among) const;
  void fold(Siblings& groups);
  bool fold_links(const TorusSymmetry& symmetry);
  bool fold_switch(int node, int first);
  bool fold_nics(int node, int first);
  bool fold_link(std::int32_t link, std::int32_t first);

  // What one switch has for another.
  struct Sent {
    std::uint32_t from = 0, to = 0;
    double bytes = 0;
  };
  static std::pair<std::uint32_t, std::uint32_t> ends(const Sent& sent) {
    return {sent.from, sent.to};
  }
  // Whose NICs a message between two domains takes.
  enum class Sending { every_member, first_members, all_together, between_switches };
  std::optional<CrossingTimes> crossing_times(const Siblings& groups, int members);
  double trees_time(const Siblings& groups, int members);
  double round_time(const Siblings& groups, int members, const TreeHops& hops, Sending sending);
  void send_hop(Ranks group, int members, const TreeHop& hop, Sending sending);
  void send_own(int from, int to, double bytes);

  Ranks run_from(Ranks group, std::size_t first) const;
  void send_ring(Ranks group);
  void pass_on(Ranks group, int members);
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
  void add(std::span<const LinkUse> uses);
  void add(const LinkUse& use);
  double finish();

  InterNodeKind kind_;
  int devices_ = 0, ranks_per_domain_ = 1;
  TorusNodes torus_;
  double out_of_domain_ = 0;  // seconds of a byte that every member sends
  double out_alone_ = 0;      // … that one device alone does
  bool one_link_ = false;     // inside and out (FabricTiers)
  bool unlike_nics_ = false;  // (FabricTiers)
  Routes routes_;
  Routes even_routes_;                  // of what is counted by switches
  bool counted_evenly_ = false;         // by those
  bool straddling_ = false;             // the shape that is computed, or NICs are unlike
  std::vector<double> capacities_;      // by link
  std::vector<std::size_t> first_nic_;  // by rank
  std::vector<Nic> nics_;               // of each rank
  std::vector<std::int32_t> folded_;    // by link: that which stands for it; empty: itself
  std::vector<double> load_;            // by link, bytes
  std::vector<std::int32_t> loaded_;    // links with a load
  std::vector<LinkUse> uses_;
  std::vector<Sent> between_;
};

// The same, once a shape. Threads that ask for a new shape at once compute the same rates.
class RoutedGroups {
 public:
  // Requires: as GroupRouter.
  RoutedGroups(const Cluster& cluster, const TopologyGraph& graph, const FabricTiers& tiers)
      : router_(cluster, graph, tiers) {}
  ~RoutedGroups();
  RoutedGroups(const RoutedGroups&) = delete;
  RoutedGroups& operator=(const RoutedGroups&) = delete;

  const GroupRates& rates(GroupShape shape, int members);

 private:
  const GroupRouter router_;
  std::atomic<GroupRouter*> idle_ = nullptr;  // a copy that nobody computes with
  KnownRates<GroupShape, GroupRates> known_;
};

}  // namespace trainyard
