// Routes over a fabric's switches: which links carry which share of a flow. Deterministic.
//
// *Adaptive*: over all shortest ways, split at every switch in proportion to the bandwidth of the
// links that lead nearer. *Static*: one way for each pair of NICs, chosen at every switch by a hash
// (ECMP); in a torus dimension by dimension, the shorter way round (e-cube, Dally & Seitz 1987).
// In a dragonfly a *minimal* way has one link between the two groups (adaptive: split over all of
// these links; static: one by hash), and *Valiant's* goes by way of a third group, split evenly
// over all third groups (Kim, Dally, Scott & Abts 2008).
// Assumes that congestion does not move traffic: adaptive routing splits as if nothing else were
// sent.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/cluster/topology.h"

namespace trainyard {

struct LinkUse {
  std::int32_t link = 0;  // of the graph's e-th edge: 2e from source to target, 2e + 1 back
  double share = 1;       // bytes on the link for each byte of the flow
};

class Routes {
 public:
  // A torus or dragonfly with nodes or links missing is routed like any graph.
  Routes(const Cluster& cluster, const TopologyGraph& graph);

  // Whether a way depends on the two NICs, not only on the switches that they hang on.
  bool by_hash() const {
    return routing_ == FabricRouting::static_paths && scheme_ != Scheme::torus;
  }

  // Appends the links from the switch of one NIC to that of another, for `share` of a flow; nothing
  // if no way leads there.
  void append(std::uint32_t from_nic, std::uint32_t to_nic, double share,
              std::vector<LinkUse>& uses);
  // The same between two switches; `key` is hashed to choose a static way.
  void append_between(std::uint32_t from, std::uint32_t to, std::uint64_t key, double share,
                      std::vector<LinkUse>& uses);

  // The switch that a NIC hangs on, the first of several. kNone: it hangs on none.
  std::uint32_t switch_of(std::uint32_t nic) const { return leaf_of_[nic]; }
  static constexpr std::uint32_t kNone = 0xffffffff;

  // Nodes along each dimension of a whole torus; else empty.
  std::span<const int> torus_sides() const {
    return scheme_ == Scheme::torus ? std::span<const int>(sides_) : std::span<const int>();
  }
  // The torus's link from the switch of a node along a dimension, forward or back; −1 if the
  // dimension has one node.
  std::int32_t torus_link(int node, std::size_t dimension, bool back) const;
  // The node of a torus's switch.
  int torus_node(std::uint32_t leaf) const { return static_cast<int>(place_[leaf]); }

 private:
  enum class Scheme { shortest, torus, dragonfly };
  struct Step {
    std::uint32_t to = 0;
    std::int32_t link = 0;
    double capacity = 0;
  };
  // A link between two groups of a dragonfly, seen from one of them.
  struct Bridge {
    std::uint32_t from = 0;
    Step step;
  };

  void number_switches(const TopologyGraph& graph);
  void read_links(const TopologyGraph& graph);
  std::span<const Step> steps(std::uint32_t at) const;
  const Step* step_to(std::uint32_t at, std::uint32_t to) const;

  bool read_torus(const Cluster& cluster);
  bool read_neighbours(int place);
  bool read_dragonfly(const Cluster& cluster);
  bool groups_are_whole() const;

  const std::vector<std::int32_t>& distances_to(std::uint32_t target);
  void find_nearer(std::uint32_t at, std::uint32_t target);
  void find_nearer_in_torus(std::uint32_t at, std::uint32_t target);
  void spread(std::uint32_t from, std::uint32_t to, double share, std::vector<LinkUse>& uses);
  void spread_one(std::uint32_t from, std::uint32_t to, std::vector<LinkUse>& uses);
  void walk(std::uint32_t from, std::uint32_t to, std::uint64_t key, double share,
            std::vector<LinkUse>& uses);
  void walk_torus(std::uint32_t from, std::uint32_t to, double share, std::vector<LinkUse>& uses);

  std::uint32_t group_of(std::uint32_t leaf) const { return place_[leaf] / leaves_per_group_; }
  std::span<const Bridge> bridges(std::uint32_t from_group, std::uint32_t to_group) const;
  void cross(std::uint32_t from, std::uint32_t to, std::uint64_t key, double share,
             std::vector<LinkUse>& uses) const;
  void detour(std::uint32_t from, std::uint32_t to, double share, std::vector<LinkUse>& uses) const;
  void hop_inside(std::uint32_t from, std::uint32_t to, double share,
                  std::vector<LinkUse>& uses) const;
  static void take(const Step& step, double share, std::vector<LinkUse>& uses) {
    uses.push_back({step.link, share});
  }

  FabricRouting routing_ = FabricRouting::adaptive;
  Scheme scheme_ = Scheme::shortest;
  std::vector<std::uint32_t> leaf_of_;  // by vertex of a NIC: its switch
  std::vector<std::uint32_t> place_;    // by vertex of a switch: its number, the leaves' first
  std::vector<std::uint32_t> leaves_;   // their vertices
  std::size_t switches_ = 0;
  std::vector<std::uint32_t> first_step_;  // by vertex, in steps_
  std::vector<Step> steps_;                // between switches; of each switch sorted by target
  // Torus.
  std::vector<int> sides_;
  std::vector<std::uint32_t> neighbours_;  // in steps_, by place, dimension, forward or back
  // Dragonfly.
  std::uint32_t leaves_per_group_ = 1, groups_ = 1;
  std::vector<std::vector<Bridge>> bridges_;  // by pair of groups
  // By target switch: hops to it from the switch of every place; −1: none.
  std::unordered_map<std::uint32_t, std::vector<std::int32_t>> distances_;
  std::vector<Step> nearer_;  // result of find_nearer(): links that lead one hop nearer
  // Links that one byte takes on its shortest ways, by pair of switches; emptied when full.
  static constexpr std::size_t kMostSpread = 1 << 16;
  std::unordered_map<std::uint64_t, std::vector<LinkUse>> spread_;
};

}  // namespace trainyard
