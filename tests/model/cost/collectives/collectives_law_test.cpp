// Laws that every registered algorithm obeys, over links derived from several clusters.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "tests/model/cluster/clusters.h"
#include "tests/model/cost/collectives/example_links.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

std::vector<GroupLinks> example_groups() {
  const FabricTiers nodes = tiers_of(fat_tree_cluster(16, 4, 1));
  const FabricTiers mesh = tiers_of(mesh_cluster(4));
  return {group_links(nodes, {1, 2}),
          group_links(nodes, {1, 8}),
          group_links(nodes, {1, 128}),
          group_links(nodes, {8, 16}),
          group_links(nodes, {4, 32}),
          group_links(tiers_of(fat_tree_cluster(6, 6, 1)), {1, 48}),
          group_links(tiers_of(four_nic_cluster(4)), {2, 16}),
          group_links(tiers_of(nvl72_cluster(36)), {1, 72}),
          group_links(tiers_of(nvl72_cluster(36)), {1, 144}),
          group_links(mesh, {1, 4}),
          group_links(mesh, {1, 32}),
          group_links(tiers_of(pcie_cluster(4, 2)), {1, 32}),
          group_links(tiers_of(pcie_cluster(2, 16)), {1, 16}),
          group_links(tiers_of(pcie_cluster(2, 16)), {4, 4})};
}

class EveryAlgorithm : public testing::TestWithParam<const CollectiveAlgorithm*> {
 protected:
  // Calls `check` on every example group that the algorithm applies to.
  template <typename Check>
  static void on_groups(Check check) {
    int applied = 0;
    for (const GroupLinks& links : example_groups()) {
      if (!GetParam()->applies(links)) continue;
      SCOPED_TRACE(testing::Message() << links.ranks_per_domain << " x " << links.domains);
      check(links);
      ++applied;
    }
    EXPECT_GT(applied, 0) << "no example group exercises this algorithm";
  }
};

TEST_P(EveryAlgorithm, TakesNoTimeForOneRank) {
  GroupLinks alone = one_domain(1, BytesPerSecond(450e9), Seconds(3e-6));
  EXPECT_EQ(named_time(GetParam()->name, GetParam()->operation, alone, Bytes(1e9)), Seconds(0));
}

TEST_P(EveryAlgorithm, NeverGetsFasterWithMoreBytes) {
  on_groups([](const GroupLinks& links) {
    Seconds before = GetParam()->time(links, Bytes(0));
    for (double bytes = 1; bytes < 1e11; bytes *= 3) {
      const Seconds now = GetParam()->time(links, Bytes(bytes));
      EXPECT_GT(now, before);
      before = now;
    }
  });
}

// Bytes per member that `round` sends from one domain to another; nothing if the round also sends
// bytes inside a domain.
std::optional<Bytes> leaving_in(const TransferRound& round, const GroupLinks& links) {
  Bytes across, inside;
  for (const Transfer& of : round.transfers) {
    const bool leaves = of.from / links.ranks_per_domain != of.to / links.ranks_per_domain;
    (leaves ? across : inside) += of.bytes * round.repeats;
  }
  if (across > Bytes(0) && inside > Bytes(0)) return std::nullopt;
  return across / links.size;
}

// `leaving` agrees with the transfers that the simulator plays.
TEST_P(EveryAlgorithm, LeavesDomainsInRoundsOfTheirOwnWhereItSaysSo) {
  if (GetParam()->leaving == nullptr) return;
  on_groups([](const GroupLinks& links) {
    Bytes leaving;
    for (const TransferRound& round : GetParam()->rounds(links, Bytes(1e6))) {
      const auto of_round = leaving_in(round, links);
      ASSERT_TRUE(of_round.has_value());
      leaving += *of_round;
    }
    EXPECT_NEAR(GetParam()->leaving(links, Bytes(1e6)).value(), leaving.value(), 1e-3);
  });
}

// A lower bound of the time from bandwidth alone, whatever the algorithm: the slower of two cuts, a
// rank's own links and its domain's share of the NICs. Reductions in the network save the second
// pass of an all-reduce.
double bandwidth_bound(const CollectiveAlgorithm& algorithm, const GroupLinks& links, double s) {
  const bool in_network = algorithm.name == "nvls" || algorithm.name == "sharp";
  const auto bound = [&](double parts, double members, double rate) {
    const double share = (parts - 1) / parts;
    switch (algorithm.operation) {
      case all_reduce:
        return (in_network ? 1 : 2) * share * s / rate;
      case all_gather:
      case reduce_scatter:
        return share * s / rate;
      case all_to_all:
        return members * share * s / rate;
      case broadcast:
      case send:
        break;
    }
    return s / rate;
  };
  if (links.domains == 1) return bound(links.size, 1, links.inside.value());
  const double domains =
      bound(links.domains, links.ranks_per_domain, links.across.value() * links.ranks_per_domain);
  if (!links.one_link) return domains;
  return std::max(domains, bound(links.size, 1, links.inside.value()));
}

TEST_P(EveryAlgorithm, IsNeverBelowTheBandwidthBound) {
  on_groups([](const GroupLinks& links) {
    for (const double bytes : {1e3, 1e6, 1e9, 1e12}) {
      EXPECT_GE(GetParam()->time(links, Bytes(bytes)).value(),
                (1 - 1e-12) * bandwidth_bound(*GetParam(), links, bytes));
    }
  });
}

TEST_P(EveryAlgorithm, HalvesWhenBandwidthsDoubleAndLatenciesHalve) {  // handbook §12.4
  on_groups([](const GroupLinks& links) {
    GroupLinks twice = links;
    for (BytesPerSecond* rate : {&twice.inside, &twice.inside_pair, &twice.across, &twice.passing,
                                 &twice.across_all_to_all}) {
      *rate *= 2;
    }
    twice.inside_latency /= 2;
    twice.across_latency /= 2;
    for (const double bytes : {0.0, 1e4, 1e9}) {
      const double before = GetParam()->time(links, Bytes(bytes)).value();
      EXPECT_NEAR(GetParam()->time(twice, Bytes(bytes)).value(), before / 2, 1e-12 * before);
    }
  });
}

std::string test_name(const testing::TestParamInfo<const CollectiveAlgorithm*>& instance) {
  static const std::vector<std::string> kOperations = {"all_reduce", "all_gather", "reduce_scatter",
                                                       "all_to_all", "broadcast",  "send"};
  std::string name = kOperations.at(static_cast<std::size_t>(instance.param->operation)) + "_" +
                     std::string(instance.param->name);
  for (char& letter : name) {
    if (letter == '-') letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryAlgorithm,
                         testing::ValuesIn(collective_algorithms().begin(),
                                           collective_algorithms().end()),
                         test_name);

TEST(CollectiveAlgorithms, HaveNamesUniqueWithinAnOperation) {
  std::set<std::pair<CollectiveOperation, std::string_view>> names;
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    EXPECT_TRUE(names.emplace(algorithm->operation, algorithm->name).second) << algorithm->name;
  }
}

TEST(CollectiveAlgorithms, LeaveNoOperationAndNoGroupWithoutATime) {
  for (int operation = 0; operation < kCollectiveOperations; ++operation) {
    for (const GroupLinks& links : example_groups()) {
      const Seconds time = collective_time(CollectiveOperation(operation), links, Bytes(1e6), {});
      EXPECT_GT(time, Seconds(0));
      EXPECT_LT(time, Seconds(1));
    }
  }
}

}  // namespace
}  // namespace trainyard
