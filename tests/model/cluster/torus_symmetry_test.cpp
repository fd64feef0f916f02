// The symmetries of a torus, by hand; and a check that counting one group of each orbit gives what
// counting all groups gives.
#include "model/cluster/torus_symmetry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "model/cluster/topology_graph.h"
#include "model/plan/process_groups.h"
#include "tests/model/cluster/clusters.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

// Groups of `size` ranks, `stride` apart, that partition the ranks; one after the other.
std::vector<int> groups_of(int stride, int size, int ranks) {
  std::vector<int> all;
  for (int block = 0; block < ranks; block += stride * size) {
    for (int first = block; first < block + stride; ++first) {
      for (int i = 0; i < size; ++i) all.push_back(first + i * stride);
    }
  }
  return all;
}

std::size_t copies(const TorusNodes& nodes, int stride, int size) {
  const int count = std::accumulate(nodes.sides.begin(), nodes.sides.end(), 1, std::multiplies<>());
  return TorusSymmetry(nodes, groups_of(stride, size, count * nodes.devices),
                       static_cast<std::size_t>(size))
      .copies();
}

// A row shifted across the rows is another row; a row shifted along itself is the same row with
// another beginning.
TEST(TorusSymmetry, OfRowsIsAcrossThem) {
  EXPECT_EQ(copies({.sides = {4, 6}}, 1, 4), 6U);
  EXPECT_EQ(copies({.sides = {6, 4}}, 6, 4), 6U);  // columns, across them
  EXPECT_EQ(copies({.sides = {4, 6}, .devices = 8}, 8, 4), 6U);
  EXPECT_EQ(copies({.sides = {4, 6}, .devices = 8}, 1, 32), 6U);
}

TEST(TorusSymmetry, OfSlabsIsByWholeSlabs) {
  EXPECT_EQ(copies({.sides = {4, 6}}, 1, 8), 3U);  // two rows
  EXPECT_EQ(copies({.sides = {4, 6}}, 1, 24), 1U);
  EXPECT_EQ(copies({.sides = {3, 4, 8}}, 1, 24), 4U);
  EXPECT_EQ(copies({.sides = {3, 4, 8}}, 1, 6), 16U);  // by two rows and by a plane
}

TEST(TorusSymmetry, KeepsTheNodesOfADomainTogether) {
  EXPECT_EQ(copies({.sides = {8, 3}}, 8, 3), 8U);
  EXPECT_EQ(copies({.sides = {8, 3}, .domain = 4}, 8, 3), 2U);
  EXPECT_EQ(copies({.sides = {8, 3}, .domain = 16}, 8, 3), 1U);
}

TEST(TorusSymmetry, NeedsEveryGroupToLieAsAnotherDoes) {
  const TorusNodes nodes{.sides = {4, 5}};
  std::vector<int> rows = groups_of(1, 4, 20);
  EXPECT_EQ(TorusSymmetry(nodes, rows, 4).copies(), 5U);
  std::swap(rows[1], rows[2]);
  EXPECT_EQ(TorusSymmetry(nodes, rows, 4).copies(), 1U);
  std::swap(rows[1], rows[2]);
  rows.resize(16);  // the last row has no group
  EXPECT_EQ(TorusSymmetry(nodes, rows, 4).copies(), 1U);
}

TEST(TorusSymmetry, TakesTheFirstOfAnOrbit) {
  const TorusNodes nodes{.sides = {4, 6}};
  const TorusSymmetry rows(nodes, groups_of(1, 4, 24), 4);
  EXPECT_EQ(rows.first(3), 3);
  EXPECT_EQ(rows.first(8), 0);
  EXPECT_EQ(rows.first(23), 3);
}

class Draw {
 public:
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random_)];
  }

  Cluster torus() {
    Cluster cluster = torus_cluster(one_of<std::vector<int>>({{6},
                                                              {16},
                                                              {3, 4},
                                                              {4, 4},
                                                              {2, 8},
                                                              {5, 6},
                                                              {2, 2, 3},
                                                              {4, 4, 6},
                                                              {8, 4, 4},
                                                              {6, 5, 4},
                                                              {16, 8, 8},
                                                              {32, 16, 8}}),
                                    BytesPerSecond(one_of<double>({20e9, 60e9, 300e9})));
    cluster.devices_per_node = one_of<int>({1, 2, 4});
    cluster.nvlink_domain = cluster.devices_per_node * one_of<int>({1, 1, 1, 2});
    cluster.inter.nics_per_node = one_of<int>({1, cluster.devices_per_node});
    cluster.inter.routing =
        one_of<FabricRouting>({FabricRouting::adaptive, FabricRouting::static_paths});
    return cluster;
  }

  // The shape of a process group with two ranks or more, of a plan on `devices` devices.
  GroupShape shape(int devices) {
    Plan plan;
    int left = devices;
    for (int* degree : {&plan.tensor_parallel, &plan.context_parallel, &plan.pipeline_parallel}) {
      *degree = divisor_of(left);
      left /= *degree;
    }
    plan.data_parallel = left;
    plan.sharding_group = plan.context_parallel * divisor_of(left);
    plan.expert_parallel = divisor_of(left);
    std::vector<std::string> order = {"tp", "cp", "ep", "dp", "pp"};
    std::ranges::shuffle(order, random_);
    plan.rank_order = fmt::format("{}", fmt::join(order, "-"));
    if (!expert_groups_are_alike(plan)) plan.expert_parallel = 1;
    const ProcessGroups groups = process_groups(plan);
    std::vector<GroupShape> shapes;
    for (const GroupShape of :
         {groups.tensor, groups.context, groups.data, groups.pipeline, groups.dense_gradient,
          groups.dense_shard, groups.dense_replica, groups.expert, groups.expert_data}) {
      if (of.size > 1) shapes.push_back(of);
    }
    return one_of(shapes);
  }

 private:
  int divisor_of(int number) {
    std::vector<int> divisors;
    for (int i = 1; i <= number; ++i) {
      if (number % i == 0) divisors.push_back(i);
    }
    return one_of(divisors);
  }

  std::mt19937 random_{20261127};
};

// The same torus with one link faster by a billionth. No two groups are then alike, so every group
// is counted.
FabricTiers without_symmetry(const Cluster& cluster) {
  TopologyGraph graph = make_topology(cluster);
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const bool in_torus = graph[source(edge, graph)].kind == VertexKind::leaf &&
                          graph[target(edge, graph)].kind == VertexKind::leaf;
    if (!in_torus) continue;
    graph[edge].bandwidth *= 1 + 1e-9;
    break;
  }
  return fabric_tiers(cluster, graph);
}

TEST(TorusSymmetry, TellsOfOneGroupWhatAllOfThemCount) {
  Draw draw;
  for (int i = 0; i < random_cases(400); ++i) {
    const Cluster cluster = draw.torus();
    const GroupShape shape = draw.shape(cluster.devices());
    const GroupLinks found = group_links(tiers_of(cluster), shape);
    const GroupLinks expected = group_links(without_symmetry(cluster), shape);
    const std::string what =
        fmt::format("torus {}, {} devices a node, {} a domain; stride {}, size {}, run {}, jump {}",
                    fmt::join(cluster.inter.dimensions, " x "), cluster.devices_per_node,
                    cluster.nvlink_domain, shape.stride, shape.size, shape.run, shape.jump);
    const auto expect_same = [&](double a, double b, const char* figure) {
      if (a == b) return;  // infinite, too
      EXPECT_NEAR(a / b, 1, 1e-7) << figure << ", " << what;
    };
    expect_same(found.across.value(), expected.across.value(), "ring");
    expect_same(found.passing.value(), expected.passing.value(), "passing");
    expect_same(found.across_all_to_all.value(), expected.across_all_to_all.value(), "all-to-all");
    for (const auto figure : {&Crowding::halving, &Crowding::doubling, &Crowding::binomial,
                              &Crowding::scatter, &Crowding::trees, &Crowding::sums}) {
      expect_same(found.crowding.*figure, expected.crowding.*figure, "crowding");
    }
  }
}

}  // namespace
}  // namespace trainyard
