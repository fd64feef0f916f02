// Routes over a fabric's switches, counted by hand: they have the right length, lead from end to
// end, and are spread as the routing says.
#include "model/cluster/routes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "model/cluster/topology_graph.h"
#include "tests/model/cluster/clusters.h"

namespace trainyard {
namespace {

constexpr BytesPerSecond kLink(25e9);

// The routes of a cluster, between NICs named by their number.
class Ways {
 public:
  explicit Ways(const Cluster& cluster) : graph_(make_topology(cluster)), routes_(cluster, graph_) {
    for (const auto vertex : boost::make_iterator_range(vertices(graph_))) {
      if (graph_[vertex].kind == VertexKind::nic) {
        nics_.push_back(static_cast<std::uint32_t>(vertex));
      }
    }
  }

  // The share of a message on each link, by link and direction.
  std::map<int, double> between(int from_nic, int to_nic) {
    std::vector<LinkUse> uses;
    routes_.append(nics_[static_cast<std::size_t>(from_nic)],
                   nics_[static_cast<std::size_t>(to_nic)], 1, uses);
    std::map<int, double> shares;
    for (const LinkUse& use : uses) shares[use.link] += use.share;
    return shares;
  }
  // The average number of links on the way, NICs' own links left out.
  double hops(int from_nic, int to_nic) {
    double sum = 0;
    for (const auto& [link, share] : between(from_nic, to_nic)) sum += share;
    return sum;
  }
  // What leaves each vertex less what arrives there, by vertex.
  std::map<std::size_t, double> surplus(int from_nic, int to_nic) {
    std::vector<std::pair<std::size_t, std::size_t>> ends;
    for (const auto edge : boost::make_iterator_range(edges(graph_))) {
      ends.emplace_back(source(edge, graph_), target(edge, graph_));
    }
    std::map<std::size_t, double> surplus;
    for (const auto& [link, share] : between(from_nic, to_nic)) {
      auto [a, b] = ends[static_cast<std::size_t>(link / 2)];
      if (link % 2 == 1) std::swap(a, b);
      surplus[a] += share;
      surplus[b] -= share;
    }
    return surplus;
  }
  std::size_t switch_of(int nic) const {
    return routes_.switch_of(nics_[static_cast<std::size_t>(nic)]);
  }
  int nics() const { return static_cast<int>(nics_.size()); }

 private:
  TopologyGraph graph_;
  Routes routes_;
  std::vector<std::uint32_t> nics_;
};

std::vector<Cluster> fabrics() {
  using enum FabricRouting;
  return {torus_cluster({4, 3, 2}, kLink),
          with_routing(torus_cluster({5, 4}, kLink), static_paths),
          dragonfly_cluster(20, 4, 1, kLink),
          with_routing(dragonfly_cluster(12, 4, 2, kLink), static_paths),
          with_routing(dragonfly_cluster(20, 4, 1, kLink), valiant),
          drawn_cluster(kLink),
          with_routing(drawn_cluster(kLink), static_paths),
          with_routing(fat_tree_cluster(6, 2, 2), static_paths)};
}

TEST(Routes, LeadAllOfAFlowFromItsSenderToItsReceiver) {
  for (const Cluster& cluster : fabrics()) {
    Ways ways(cluster);
    for (int from = 0; from < ways.nics(); from += 5) {
      for (int to = 0; to < ways.nics(); to += 3) {
        for (const auto& [vertex, surplus] : ways.surplus(from, to)) {
          const bool same = ways.switch_of(from) == ways.switch_of(to);
          const double expected = same                             ? 0
                                  : vertex == ways.switch_of(from) ? 1
                                  : vertex == ways.switch_of(to)   ? -1
                                                                   : 0;
          EXPECT_NEAR(surplus, expected, 1e-12);
        }
      }
    }
  }
}

TEST(Routes, InATorusAreAsLongAsTheShorterWayRoundEveryDimension) {
  for (const FabricRouting routing : {FabricRouting::adaptive, FabricRouting::static_paths}) {
    Ways ways(with_routing(torus_cluster({5, 4, 2}, kLink), routing));
    const auto round = [](int a, int b, int side) {
      return std::min(std::abs(a - b), side - std::abs(a - b));
    };
    for (int from = 0; from < 40; ++from) {
      for (int to = 0; to < 40; ++to) {
        const int hops = round(from % 5, to % 5, 5) + round(from / 5 % 4, to / 5 % 4, 4) +
                         round(from / 20, to / 20, 2);
        EXPECT_NEAR(ways.hops(8 * from, 8 * to), hops, 1e-12);
      }
    }
  }
}

TEST(Routes, InATorusAreOneWayWhenStaticAndAllShortestOnesWhenAdaptive) {
  // From (0, 0) to (1, 1) of a 4 × 4 torus: over (1, 0) alone, or half over each of the two
  // corners.
  Ways one(with_routing(torus_cluster({4, 4}, kLink), FabricRouting::static_paths));
  EXPECT_EQ(one.between(0, 8 * 5).size(), 2u);
  Ways both(torus_cluster({4, 4}, kLink));
  const auto shares = both.between(0, 8 * 5);
  EXPECT_EQ(shares.size(), 4u);
  for (const auto& [link, share] : shares) EXPECT_DOUBLE_EQ(share, 0.5);
}

TEST(Routes, StaticOnesAreDrawnByThePairAndUseAllUplinks) {
  // With 8 uplinks per leaf, each pair of NICs keeps to one uplink, and all pairs together use all.
  Ways ways(with_routing(fat_tree_cluster(4, 2, 2), FabricRouting::static_paths));
  std::set<int> first_links;
  for (int nic = 0; nic < 16; ++nic) {
    for (int other = 16; other < 32; ++other) {
      const auto shares = ways.between(nic, other);
      EXPECT_EQ(shares, ways.between(nic, other));
      ASSERT_EQ(shares.size(), 2u);
      for (const auto& [link, share] : shares) {
        EXPECT_EQ(share, 1);
        first_links.insert(link);
      }
    }
  }
  EXPECT_EQ(first_links.size(), 16u);
}

TEST(Routes, InADragonflyCrossOneLinkBetweenGroups) {
  // Groups of 4 switches with one link to each other group: a route is at most local, global,
  // local.
  Ways ways(dragonfly_cluster(20, 4, 1, kLink));
  for (int to = 8 * 4; to < ways.nics(); to += 8) {
    EXPECT_GE(ways.hops(0, to), 1);
    EXPECT_LE(ways.hops(0, to), 3);
  }
  EXPECT_EQ(ways.hops(0, 8), 1);  // inside the group
}

TEST(Routes, InADragonflySpreadOverAllLinksBetweenTwoGroups) {
  // 3 groups with 4 links between any two: each link carries a quarter.
  Ways ways(dragonfly_cluster(12, 4, 2, kLink));
  int quarters = 0;
  for (const auto& [link, share] : ways.between(0, 8 * 4)) {
    EXPECT_DOUBLE_EQ(share, 0.25);
    ++quarters;
  }
  EXPECT_GE(quarters, 4);
}

TEST(Routes, ValiantsPassThroughEveryThirdGroup) {
  // With one switch per group, all links are between groups. Routes have two hops, a third of the
  // traffic over each of the three other groups.
  Ways ways(with_routing(dragonfly_cluster(5, 1, 4, kLink), FabricRouting::valiant));
  const auto shares = ways.between(0, 8);
  EXPECT_EQ(shares.size(), 6u);
  for (const auto& [link, share] : shares) EXPECT_DOUBLE_EQ(share, 1.0 / 3);
}

TEST(Routes, AroundABrokenTorusLinkAreThoseOfAnyGraph) {
  const Cluster cluster = torus_cluster({4}, kLink);
  TopologyGraph graph = make_topology(cluster);
  std::vector<std::uint32_t> leaves;
  std::uint32_t nic = 0;
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) {
    const auto id = static_cast<std::uint32_t>(vertex);
    if (graph[vertex].kind == VertexKind::leaf) leaves.push_back(id);
    if (graph[vertex].kind == VertexKind::nic && graph[vertex].index == 0) nic = id;
  }
  remove_edge(leaves[0], leaves[1], graph);
  Routes routes(cluster, graph);
  EXPECT_EQ(routes.switch_of(nic), leaves[0]);
  std::vector<LinkUse> uses;
  routes.append_between(leaves[0], leaves[1], 0, 1, uses);
  EXPECT_EQ(uses.size(), 3u);  // the other way round
}

TEST(Routes, EndWhereThereIsNoWay) {
  const Cluster cluster = torus_cluster({2}, kLink);
  TopologyGraph graph = make_topology(cluster);
  std::vector<std::uint32_t> leaves;
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) {
    if (graph[vertex].kind == VertexKind::leaf)
      leaves.push_back(static_cast<std::uint32_t>(vertex));
  }
  remove_edge(leaves[0], leaves[1], graph);
  for (const FabricRouting routing : {FabricRouting::adaptive, FabricRouting::static_paths}) {
    Routes routes(with_routing(cluster, routing), graph);
    std::vector<LinkUse> uses;
    routes.append_between(leaves[0], leaves[1], 0, 1, uses);
    EXPECT_TRUE(uses.empty());
  }
}

}  // namespace
}  // namespace trainyard
