// What process groups have on a fabric without nested subtrees (torus, dragonfly, graph, static
// routing): all sibling groups of a shape send at once over the routes that the simulator takes,
// and the fullest link sets the rate. Computed once a shape and kept.
//
// Exact for rings. An all-to-all is counted switch by switch (in a torus dimension by dimension):
// exact up to kMostPairs pairs; beyond them some distances, spread evenly over the group, stand for
// all, and a hash for even shares, as many flows make them.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/group.h"
#include "model/cluster/routes.h"
#include "model/cluster/topology.h"

namespace trainyard {

// Protocol efficiency taken off; infinite where nothing leaves the domains.
struct GroupRates {
  BytesPerSecond ring;        // of a whole ring in rank order between two domains
  BytesPerSecond all_to_all;  // per member, of what it sends out of its domain
};

// Counts what every link carries; a value with its own scratch.
class GroupRouter {
 public:
  static constexpr std::size_t kMostPairs = 1 << 16;

  // Requires: as Routes; `ranks_per_domain` of the first tier.
  GroupRouter(const Cluster& cluster, const TopologyGraph& graph, int ranks_per_domain);

  // `members`: of the group in each domain.
  GroupRates compute(GroupShape shape, int members);

 private:
  using Ranks = std::vector<int>;
  // The switches of a group and how many members hang on each.
  using Census = std::vector<std::pair<std::uint32_t, double>>;

  void read_nics(const Cluster& cluster, const TopologyGraph& graph);
  int domain_of(int rank) const { return rank / ranks_per_domain_; }
  std::span<const std::uint32_t> nics_of(int rank) const;
  std::vector<std::uint32_t> nics_of(std::span<const int> ranks) const;
  std::vector<Ranks> siblings(GroupShape shape) const;

  void send_ring(const Ranks& group, int members);
  void send_all_to_all(const Ranks& group);
  void send_by_switches(const std::vector<Ranks>& groups);
  Census census_of(std::span<const int> ranks) const;
  void send_between_switches(const Census& census, double bytes, std::size_t most);
  void send_around(const Census& census, std::size_t distance, double bytes);
  void send(std::span<const std::uint32_t> out, std::span<const std::uint32_t> in, double bytes);
  void add(std::span<const LinkUse> uses);
  double finish();

  InterNodeKind kind_;
  int devices_ = 0, ranks_per_domain_ = 1;
  Routes routes_;
  Routes even_routes_;              // of an all-to-all counted by switches
  std::vector<double> capacities_;  // by link
  std::vector<std::size_t> first_nic_;
  std::vector<std::uint32_t> nics_;     // of each rank
  std::vector<std::int32_t> nic_link_;  // by vertex, of NICs: from the NIC to its switch
  std::vector<double> load_;            // by link, bytes
  std::vector<LinkUse> uses_;
};

// The same, once a shape. Threads that ask for a new shape at once compute the same rates.
class RoutedGroups {
 public:
  // Requires: as GroupRouter.
  RoutedGroups(const Cluster& cluster, const TopologyGraph& graph, int ranks_per_domain)
      : router_(cluster, graph, ranks_per_domain) {}
  ~RoutedGroups();
  RoutedGroups(const RoutedGroups&) = delete;
  RoutedGroups& operator=(const RoutedGroups&) = delete;

  GroupRates rates(GroupShape shape, int members);

 private:
  struct Known {
    GroupShape shape;
    GroupRates rates;
    Known* next = nullptr;
  };
  const GroupRouter router_;
  std::atomic<Known*> known_ = nullptr;  // a list that only grows, at its head
};

}  // namespace trainyard
