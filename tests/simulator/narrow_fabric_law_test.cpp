// Collectives that are limited by the links between switches, on a fabric of every kind and at both
// grains. They take as long as their closed form (handbook §6) on the links that the group has
// there, to 1e-6.
//
// The same times are counted a second time, from who sends to whom and from routes that are written
// out by hand: every round lasts until the fullest link has carried its bytes. (Routes by hash
// cannot be counted by hand.)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "model/cluster/topology_graph.h"
#include "simulator/engine/phases.h"
#include "tests/model/cluster/clusters.h"
#include "tests/simulator/call_graph.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

constexpr BytesPerSecond kCable(40e9);
constexpr std::array kGrains = {NetworkGrain::collective, NetworkGrain::message};

// ---- The closed form ----------------------------------------------------------------------------

struct NarrowPlace {
  const char* name;
  Cluster cluster;
  GroupShape shape;
};

Cluster less_efficient(Cluster cluster) {
  cluster.inter.efficiency = 0.85;
  return cluster;
}

std::vector<NarrowPlace> narrow_places() {
  const Cluster torus = torus_cluster({8}, kCable);
  const Cluster drawn = drawn_cluster(BytesPerSecond(100e9));
  return {
      {"leaves", less_efficient(fat_tree_cluster(4, 2, 4)), {1, 32}},
      {"leaves_lanes", fat_tree_cluster(4, 2, 4), {8, 4}},
      {"leaves_far", fat_tree_cluster(4, 2, 4), {16, 2}},
      {"leaves_of_four", fat_tree_cluster(8, 4, 4), {8, 8}},
      {"rails", rail_cluster(4, 2, 4), {1, 32}},
      {"rails_lanes", rail_cluster(4, 2, 4), {8, 4}},
      {"around", torus, {1, 64}},
      {"side_by_side", torus, {8, 8}},
      {"strided", torus, {16, 4}},
      {"plane", torus_cluster({4, 4}, kCable), {1, 128}},
      {"columns", torus_cluster({4, 4}, kCable), {32, 4}},
      {"by_dimension",
       with_routing(torus_cluster({4, 4}, kCable), FabricRouting::static_paths),
       {8, 16}},
      {"dragonfly_pairs", dragonfly_cluster(2, 1, 1, kCable), {8, 2}},
      {"dragonfly", dragonfly_cluster(6, 2, 1, kCable), {8, 6}},
      {"valiant",
       with_routing(dragonfly_cluster(5, 1, 4, kCable), FabricRouting::valiant),
       {1, 40}},
      {"drawn", less_efficient(drawn), {1, 32}},
      {"drawn_lanes", drawn, {8, 4}},
      {"drawn_far", drawn, {16, 2}},
  };
}

class AloneOnNarrowFabrics : public testing::TestWithParam<const CollectiveAlgorithm*> {};

TEST_P(AloneOnNarrowFabrics, EveryAlgorithmTakesAsLongAsItsClosedForm) {
  const CollectiveAlgorithm& algorithm = *GetParam();
  int applied = 0;
  for (const auto& [name, cluster, shape] : narrow_places()) {
    for (const double bytes : {8.0, 1e6, 3e8}) {
      if (!is_next_tried()) continue;
      SCOPED_TRACE(fmt::format("{} of {}x{}, {} bytes", name, shape.stride, shape.size, bytes));
      applied += takes_its_closed_form(cluster, shape, algorithm, Bytes(bytes)) ? 1 : 0;
    }
  }
  const bool one_domain = algorithm.name == "nvls";
  EXPECT_EQ(applied > 0, !one_domain);
}

// ---- Counted by hand ----------------------------------------------------------------------------

struct CableUse {
  int cable;
  double share;
};

// Four nodes of eight devices with NICs of 50 GB/s and NVLink of 450 GB/s, and the cables between
// the nodes.
struct HandRouted {
  const char* name;
  Cluster cluster;
  double cable;  // bytes a second, each way
  std::vector<CableUse> (*between)(int from, int to, int rail);
};

// Leaves of two nodes, 16 NICs below and a quarter of their bandwidth above, spread evenly: one
// pipe of 200 GB/s out of each leaf into the other.
std::vector<CableUse> over_leaves(int from, int to, int /*rail*/) {
  if (from / 2 == to / 2) return {};
  return {{from / 2, 1}};
}

// The same for each rail: two NICs below and 25 GB/s above.
std::vector<CableUse> over_rails(int from, int to, int rail) {
  if (from / 2 == to / 2) return {};
  return {{2 * rail + from / 2, 1}};
}

std::vector<CableUse> straight(int from, int to, int /*rail*/) { return {{4 * from + to, 1}}; }

// A message goes by each of the two other groups, half of it each.
std::vector<CableUse> by_thirds(int from, int to, int /*rail*/) {
  std::vector<CableUse> uses;
  for (int third = 0; third < 4; ++third) {
    if (third == from || third == to) continue;
    uses.insert(uses.end(), {{4 * from + third, 0.5}, {4 * third + to, 0.5}});
  }
  return uses;
}

// A ring of four: directly to the neighbour; to the opposite node, half of it each way round.
std::vector<CableUse> around(int from, int to, int /*rail*/) {
  if (to == (from + 1) % 4 || from == (to + 1) % 4) return {{4 * from + to, 1}};
  const int on = (from + 1) % 4;
  const int back = (from + 3) % 4;
  return {{4 * from + on, 0.5}, {4 * on + to, 0.5}, {4 * from + back, 0.5}, {4 * back + to, 0.5}};
}

// The same with static routes: to the opposite node all of it goes forward from even nodes and back
// from odd ones.
std::vector<CableUse> around_one_way(int from, int to, int /*rail*/) {
  if (to == (from + 1) % 4 || from == (to + 1) % 4) return {{4 * from + to, 1}};
  const int by = (from + (from % 2 == 0 ? 1 : 3)) % 4;
  return {{4 * from + by, 1}, {4 * by + to, 1}};
}

// A square: nodes that differ in one bit are neighbours; otherwise half goes by each of the other
// two.
std::vector<CableUse> on_a_square(int from, int to, int /*rail*/) {
  if ((from ^ to) != 3) return {{4 * from + to, 1}};
  const int row = from ^ 1;
  const int column = from ^ 2;
  return {
      {4 * from + row, 0.5}, {4 * row + to, 0.5}, {4 * from + column, 0.5}, {4 * column + to, 0.5}};
}

// Leaves of two nodes, each with a cable to each of two spines.
std::vector<CableUse> over_two_spines(int from, int to, int /*rail*/) {
  if (from / 2 == to / 2) return {};
  return {{from / 2, 0.5}, {2 + from / 2, 0.5}};
}

std::vector<HandRouted> hand_routed() {
  const Cluster dragonfly = dragonfly_cluster(4, 1, 3, kCable);
  const Cluster torus = torus_cluster({4}, kCable);
  return {{"leaves", fat_tree_cluster(4, 2, 4), 200e9, over_leaves},
          {"rails", rail_cluster(4, 2, 4), 25e9, over_rails},
          {"dragonfly", dragonfly, 40e9, straight},
          {"valiant", with_routing(dragonfly, FabricRouting::valiant), 40e9, by_thirds},
          {"torus", torus, 40e9, around},
          {"torus_by_dimension", with_routing(torus, FabricRouting::static_paths), 40e9,
           around_one_way},
          {"square", torus_cluster({2, 2}, kCable), 40e9, on_a_square},
          {"drawn", drawn_cluster(BytesPerSecond(100e9)), 100e9, over_two_spines}};
}

// Bytes on every link. Every device has a NIC and a link to its node's switch.
class LinkLoads {
 public:
  explicit LinkLoads(const HandRouted& fabric) : fabric_(fabric) {}

  void add(const TaskGroup& group, int block, const TransferRound& round,
           const Transfer& transfer) {
    const auto rank = [&](int member) { return group[static_cast<std::size_t>(member)]; };
    const int from = rank(transfer.from);
    const int to = rank(transfer.to);
    const double bytes = transfer.bytes.value() * round.overhead;
    if (round.way == Way::switch_across && from != to) return pass(from, to, bytes);
    if (round.way == Way::switch_across) return leave_and_arrive(from, to, bytes);
    if (from / 8 == to / 8) return pass_inside(from, to, bytes);
    const int lanes = round.way == Way::own_links ? 1 : block;
    for (int lane = 0; lane < lanes; ++lane) {
      const bool own = round.way == Way::own_links;
      int out = own ? from : rank(transfer.from / block * block + lane);
      const int in = own ? to : rank(transfer.to / block * block + lane);
      if (own && fabric_.cluster.inter.kind == InterNodeKind::rail && out % 8 != in % 8) {
        const int of_rail = out / 8 * 8 + in % 8;
        pass_inside(out, of_rail, bytes);
        out = of_rail;
      }
      leave_and_arrive(out, in, bytes / lanes);
      pass(out, in, bytes / lanes);
    }
  }

  // Seconds until the fullest link is done.
  double longest() const {
    double most = 0;
    for (const auto& [link, bytes] : links_) most = std::max(most, bytes / rate_of(link.first));
    return most;
  }

 private:
  enum class Kind { nvlink_up, nvlink_down, nic_out, nic_in, cable };

  double rate_of(Kind kind) const {
    if (kind == Kind::cable) return fabric_.cable;
    return kind == Kind::nic_out || kind == Kind::nic_in ? 50e9 : 450e9;
  }
  void pass_inside(int from, int to, double bytes) {
    links_[{Kind::nvlink_up, from}] += bytes;
    links_[{Kind::nvlink_down, to}] += bytes;
  }
  void leave_and_arrive(int from, int to, double bytes) {
    links_[{Kind::nic_out, from}] += bytes;
    links_[{Kind::nic_in, to}] += bytes;
  }
  void pass(int from, int to, double bytes) {
    for (const CableUse& use : fabric_.between(from / 8, to / 8, from % 8)) {
      links_[{Kind::cable, use.cable}] += bytes * use.share;
    }
  }

  const HandRouted& fabric_;
  std::map<std::pair<Kind, int>, double> links_;
};

// Plays all groups at once. The rounds of an all-to-all do not wait for each other, so those of one
// kind run together.
double counted_seconds(const HandRouted& fabric, const std::vector<TaskGroup>& groups, int block,
                       const TransferRounds& rounds, bool all_to_all) {
  double seconds = 0;
  for (std::size_t first = 0; first < rounds.size();) {
    std::size_t end = first + 1;
    while (all_to_all && end < rounds.size() && rounds[end].way == rounds[first].way) ++end;
    LinkLoads loads(fabric);
    for (std::size_t i = first; i < end; ++i) {
      for (const TaskGroup& group : groups) {
        for (const Transfer& transfer : rounds[i].transfers) {
          loads.add(group, block, rounds[i], transfer);
        }
      }
      seconds += rounds[i].repeats * rounds[i].latency.value();
    }
    seconds += rounds[first].repeats * loads.longest();
    first = end;
  }
  return seconds;
}

class OnNarrowFabrics : public testing::TestWithParam<const CollectiveAlgorithm*> {};

TEST_P(OnNarrowFabrics, EveryAlgorithmTakesAsLongAsItsFullestLinks) {
  const CollectiveAlgorithm& algorithm = *GetParam();
  int applied = 0;
  for (const HandRouted& fabric : hand_routed()) {
    const TopologyGraph topology = make_topology(fabric.cluster);
    for (const GroupShape shape :
         {GroupShape{8, 4}, {1, 32}, {16, 2}, {8, 2}, {1, 16}, {4, 8}, {1, 8}}) {
      const GroupLinks links = group_links(fabric_tiers(fabric.cluster, topology), shape);
      if (!algorithm.applies(links)) continue;
      if (algorithm.operation == send && shape.size != 2) continue;
      const auto groups = sibling_groups(32, shape);
      const Call call = {algorithm.operation, &algorithm, Bytes(3e7)};
      const TaskGraph graph = call_graph(32, groups, std::vector(groups.size(), call));
      const double expected =
          counted_seconds(fabric, groups, links.ranks_per_domain,
                          algorithm.rounds(links, call.message), algorithm.operation == all_to_all);
      for (const NetworkGrain grain : kGrains) {
        EXPECT_NEAR(seconds_taken(graph, fabric.cluster, topology, grain) / expected, 1, 1e-6)
            << fmt::format("{} {}x{} {}", fabric.name, shape.stride, shape.size,
                           grain == NetworkGrain::message ? "message" : "collective");
      }
      ++applied;
    }
  }
  EXPECT_GT(applied, 0) << "no group where it applies";
}

std::string algorithm_name(const testing::TestParamInfo<const CollectiveAlgorithm*>& instance) {
  std::string name =
      fmt::format("{}_{}", static_cast<int>(instance.param->operation), instance.param->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, AloneOnNarrowFabrics,
                         testing::ValuesIn(collective_algorithms().begin(),
                                           collective_algorithms().end()),
                         algorithm_name);
INSTANTIATE_TEST_SUITE_P(Table, OnNarrowFabrics,
                         testing::ValuesIn(collective_algorithms().begin(),
                                           collective_algorithms().end()),
                         algorithm_name);

// Times counted in figures: eight groups side by side with a member on each of four nodes, 1 GB, α
// of 10 µs.
double lanes_seconds(const Cluster& cluster, CollectiveOperation operation, const char* algorithm,
                     GroupShape shape = {8, 4}) {
  const auto groups = sibling_groups(32, shape);
  const Call call = named_call(operation, algorithm, Bytes(1e9));
  return seconds_taken(call_graph(32, groups, std::vector(groups.size(), call)), cluster,
                       make_topology(cluster), NetworkGrain::message);
}

TEST(NarrowFabricsByHand, DoublingMeetsOnTheWayAcross) {
  // To the next node eight of sixteen messages cross a leaf's 200 GB/s; to the second next node all
  // do.
  EXPECT_NEAR(lanes_seconds(fat_tree_cluster(4, 2, 4), all_reduce, "recursive-doubling"),
              2 * 10e-6 + 1 / 25.0 + 1 / 12.5, 1e-9);
  // In both rounds eight messages share the one cable of 40 GB/s between two groups.
  EXPECT_NEAR(lanes_seconds(dragonfly_cluster(4, 1, 3, kCable), all_reduce, "recursive-doubling"),
              2 * 10e-6 + 2 / 5.0, 1e-9);
}

TEST(NarrowFabricsByHand, ABinomialTreeCrossesOnlyOnce) {
  // Node 0 sends to 1 below one leaf; then 0 to 2 and 1 to 3, sixteen messages over 200 GB/s.
  EXPECT_NEAR(lanes_seconds(fat_tree_cluster(4, 2, 4), broadcast, "binomial"),
              2 * 10e-6 + 1 / 50.0 + 1 / 12.5, 1e-9);
}

TEST(NarrowFabricsByHand, SharpCrossesALeafOnceForAGroup) {
  const Cluster leaves = fat_tree_cluster(4, 2, 4);
  // Eight sums over 200 GB/s; then sixteen; then one, which the NICs limit.
  EXPECT_NEAR(lanes_seconds(leaves, all_reduce, "sharp"), 2 * 10e-6 + 1 / 25.0, 1e-9);
  EXPECT_NEAR(lanes_seconds(leaves, all_reduce, "sharp", {16, 2}), 2 * 10e-6 + 1 / 12.5, 1e-9);
  EXPECT_NEAR(lanes_seconds(leaves, all_reduce, "sharp", {1, 32}), 2 * 10e-6 + 1 / 50.0, 1e-9);
}

}  // namespace
}  // namespace trainyard
