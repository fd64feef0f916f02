// Every collective algorithm, played with nothing beside it at both grains, takes as long as its
// closed form (handbook §6; model/cost/collectives), to 1e-6. All sibling groups of a shape run at
// once, as the closed form's links assume. Here NICs and links inside nodes are the limit, on
// fabrics of every kind; narrow_fabric_law_test.cpp has the cases where links between switches are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/cluster/topology_graph.h"
#include "simulator/engine/phases.h"
#include "tests/model/cluster/clusters.h"
#include "tests/simulator/call_graph.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

using enum CollectiveOperation;

constexpr BytesPerSecond kWide(4e12);

struct Place {
  const char* name;
  Cluster cluster;
  GroupShape shape;
};

Cluster with_efficiency(Cluster cluster) {
  cluster.inter.efficiency = 0.85;
  return cluster;
}

// Each place has links of one kind on all ways of a group's members, so that the time depends on
// nothing but the algorithm and the handbook's α and B.
std::vector<Place> places() {
  return {{"node_of_8", fat_tree_cluster(1, 1, 1), {1, 8}},
          {"2_in_a_node", fat_tree_cluster(2, 2, 1), {1, 2}},
          {"6_in_a_domain", nvl72_cluster(3), {2, 6}},
          {"72_in_a_domain", nvl72_cluster(18), {1, 72}},
          {"whole_of_4_nodes", fat_tree_cluster(4, 4, 1), {1, 32}},
          {"two_leaves", fat_tree_cluster(4, 2, 1), {1, 32}},
          {"data_groups", fat_tree_cluster(8, 4, 1), {8, 8}},
          {"data_groups_of_6", fat_tree_cluster(6, 6, 1), {8, 6}},
          {"two_a_node", with_efficiency(fat_tree_cluster(8, 4, 1)), {4, 16}},
          {"two_levels", fat_tree_cluster(8, 8, 1), {1, 8, 2, 16}},
          {"pairs_across", fat_tree_cluster(4, 2, 1), {8, 2}},
          {"rails", rail_cluster(8, 4, 1), {8, 8}},
          {"rails_whole", with_efficiency(rail_cluster(4, 2, 1)), {1, 32}},
          {"mesh", mesh_cluster(1), {1, 8}},
          {"part_of_a_mesh", mesh_cluster(1), {1, 4}},
          {"meshes", mesh_cluster(4), {1, 32}},
          {"pcie", pcie_cluster(1, 2), {1, 8}},
          {"pcie_nodes", with_efficiency(pcie_cluster(2, 8)), {1, 16}},
          {"pcie_nodes_few_nics", with_efficiency(pcie_cluster(4, 2)), {1, 32}},
          {"pcie_data_groups", with_efficiency(pcie_cluster(4, 2)), {8, 4}},
          {"pcie_pairs_a_node", with_efficiency(pcie_cluster(3, 4)), {4, 6}},
          {"torus", torus_cluster({4, 2}, kWide), {1, 64}},
          {"torus_by_dimension",
           with_routing(torus_cluster({3, 3}, kWide), FabricRouting::static_paths),
           {8, 9}},
          {"dragonfly", dragonfly_cluster(12, 4, 2, kWide), {8, 12}},
          {"dragonfly_valiant",
           with_routing(dragonfly_cluster(8, 2, 3, kWide), FabricRouting::valiant),
           {1, 64}},
          {"drawn", with_efficiency(drawn_cluster(kWide)), {1, 32}},
          {"hashed", with_routing(fat_tree_cluster(2, 1, 1), FabricRouting::static_paths), {1, 8}}};
}

Cluster lone_devices(Cluster cluster) {
  cluster.devices_per_node = 1;
  return cluster;
}

class EveryAlgorithm : public testing::TestWithParam<const CollectiveAlgorithm*> {};

TEST_P(EveryAlgorithm, PlayedAloneTakesAsLongAsItsClosedForm) {
  int applied = 0;
  for (const auto& [name, cluster, shape] : places()) {
    for (const double bytes : {8.0, 1e6, 3e8}) {
      if (!is_next_tried()) continue;
      SCOPED_TRACE(fmt::format("{}, {} bytes", name, bytes));
      applied += takes_its_closed_form(cluster, shape, *GetParam(), Bytes(bytes)) ? 1 : 0;
    }
  }
  EXPECT_GT(applied, 0) << "no place where it applies";
}

// A token goes to each domain once, at both levels at the same time. Under PCIe a device's link
// carries both levels.
TEST(ExchangeOfTwoLevels, PlayedAloneTakesAsLongAsItsClosedForm) {
  std::vector<Place> all = places();
  all.push_back({"lone_devices", lone_devices(mesh_cluster(8)), {1, 8}});
  int applied = 0;
  for (const auto& [name, cluster, shape] : all) {
    const TopologyGraph topology = make_topology(cluster);
    const GroupLinks links = group_links(fabric_tiers(cluster, topology), shape);
    if (links.domains == 1 || cluster.intra.kind == IntraNodeKind::pcie) continue;
    const auto groups = sibling_groups(cluster.devices(), shape);
    Call call = named_call(all_to_all, "pairwise", Bytes(3e8));
    call.leaving = 0.4;
    const TaskGraph graph = call_graph(cluster.devices(), groups, std::vector(groups.size(), call));
    const double expected = two_level_time(links, call.message, call.leaving).value();
    for (const NetworkGrain grain : {NetworkGrain::collective, NetworkGrain::message}) {
      EXPECT_NEAR(seconds_taken(graph, cluster, topology, grain), expected, 1e-6 * expected)
          << name;
    }
    ++applied;
  }
  EXPECT_GT(applied, 10);
}

std::string test_name(const testing::TestParamInfo<const CollectiveAlgorithm*>& instance) {
  std::string name =
      fmt::format("{}_{}", static_cast<int>(instance.param->operation), instance.param->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryAlgorithm,
                         testing::ValuesIn(collective_algorithms().begin(),
                                           collective_algorithms().end()),
                         test_name);

}  // namespace
}  // namespace trainyard
