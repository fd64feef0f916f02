// Every algorithm on random layouts: members per node, nodes per leaf, and distances vary, on
// trees, rails and fabrics without subtrees, also with numbers that are not powers of two. Played
// with nothing beside it at both grains, it takes as long as its closed form, to 1e-6.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/model/cluster/clusters.h"
#include "tests/simulator/call_graph.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

struct Layout {
  Cluster cluster;
  GroupShape shape;
};

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random_)];
  }

  // Leaves of equal size, and groups that divide them or are divided by them.
  Layout subtrees() {
    const int below = one_of<int>({1, 2, 3, 4, 5, 6});
    const int leaves = one_of<int>({2, 3, 4, 5, 6});
    const double narrow = one_of<double>({1, 1.5, 2, 4, 8});
    const int nodes = below * leaves;
    Layout layout{one_of<int>({0, 1}) == 0 ? fat_tree_cluster(nodes, below, narrow)
                                           : rail_cluster(nodes, below, narrow),
                  {}};
    layout.cluster.inter.efficiency = 0.85;
    layout.shape = shape_over(nodes, below);
    return layout;
  }

  // Fabrics without subtrees, so any nodes can form a group.
  Layout routed() {
    const BytesPerSecond link(one_of<double>({20e9, 60e9, 300e9}));
    Cluster cluster = one_of<Cluster>(
        {torus_cluster({6}, link), torus_cluster({3, 4}, link), torus_cluster({2, 2, 3}, link),
         dragonfly_cluster(9, 3, 1, link), dragonfly_cluster(12, 4, 2, link), drawn_cluster(link)});
    const InterNodeKind kind = cluster.inter.kind;
    if (kind == InterNodeKind::torus) {
      cluster.inter.routing =
          one_of<FabricRouting>({FabricRouting::adaptive, FabricRouting::static_paths});
    } else if (kind == InterNodeKind::dragonfly) {
      cluster.inter.routing =
          one_of<FabricRouting>({FabricRouting::adaptive, FabricRouting::valiant});
    }
    return {cluster, shape_over(cluster.nodes, 1)};
  }

 private:
  // 1, 2, 4 or 8 members per node, on every k-th node; the number of domains is a multiple of those
  // below one leaf, or a divisor of it.
  GroupShape shape_over(int nodes, int below) {
    const auto fits = [&](int domains, int apart) {
      const int of_leaf = below / apart;
      return domains > 1 && below % apart == 0 && nodes % (domains * apart) == 0 &&
             (domains % of_leaf == 0 || of_leaf % domains == 0);
    };
    std::vector<GroupShape> shapes;
    for (int domains = 2; domains <= nodes; ++domains) {
      for (int apart = 2; apart <= nodes; ++apart) {
        if (fits(domains, apart)) shapes.push_back({8 * apart, domains});
      }
      if (!fits(domains, 1)) continue;
      for (const int members : {1, 2, 4, 8}) shapes.push_back({8 / members, members * domains});
      shapes.push_back({1, 2 * domains, 2, 8});
    }
    return one_of(shapes);
  }

  std::mt19937 random_;
};

void every_algorithm_takes_its_closed_form(const Layout& layout) {
  const auto& [cluster, shape] = layout;
  SCOPED_TRACE(fmt::format("kind {} {} nodes {} a leaf {}:1, {}x{} run {}",
                           static_cast<int>(cluster.inter.kind), cluster.nodes,
                           cluster.inter.nodes_per_leaf, cluster.inter.oversubscription,
                           shape.stride, shape.size, shape.run));
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    takes_its_closed_form(cluster, shape, *algorithm, Bytes(3e7));
  }
}

constexpr unsigned kLayouts = random_cases(30);

TEST(RandomLayouts, OfSubtreesTakeAsLongAsTheirClosedForms) {
  for (unsigned seed = 0; seed < kLayouts; ++seed) {
    every_algorithm_takes_its_closed_form(Draw(seed).subtrees());
  }
}

TEST(RandomLayouts, OfRoutedFabricsTakeAsLongAsTheirClosedForms) {
  for (unsigned seed = 0; seed < kLayouts; ++seed) {
    every_algorithm_takes_its_closed_form(Draw(seed).routed());
  }
}

}  // namespace
}  // namespace trainyard
