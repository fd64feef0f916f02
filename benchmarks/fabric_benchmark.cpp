// Fabrics of every kind for 16,384 devices, 8 per node: building the graph, preparing it for the
// simulator, and the links of a group, asked for the first time and again.
#include <benchmark/benchmark.h>

#include <array>
#include <string>

#include "model/cluster/routed_groups.h"
#include "model/cluster/topology_graph.h"
#include "simulator/network/fabric.h"

namespace trainyard {
namespace {

Cluster cluster_of(InterNodeKind kind, FabricRouting routing) {
  Cluster cluster;
  cluster.devices_per_node = 8;
  cluster.nodes = 2048;
  cluster.nvlink_domain = 8;
  cluster.intra = {IntraNodeKind::nvswitch, BytesPerSecond(450e9), Seconds(3e-6)};
  cluster.inter = {.kind = kind,
                   .nics_per_node = 8,
                   .bandwidth = BytesPerSecond(50e9),
                   .nodes_per_leaf = kind == InterNodeKind::dragonfly ? 2 : 32,
                   .routing = routing,
                   .leaves_per_group = 32,
                   .global_links = 16};
  return cluster;
}

// A fat tree of two levels as a user would draw it: leaves of 32 nodes, and a cable from each leaf
// to each of 8 spines.
Cluster drawn_cluster(FabricRouting routing) {
  Cluster cluster = cluster_of(InterNodeKind::graph, routing);
  for (int spine = 0; spine < 8; ++spine) {
    cluster.inter.switches.push_back("spine-" + std::to_string(spine));
  }
  for (int leaf = 0; leaf < 64; ++leaf) {
    cluster.inter.switches.push_back("leaf-" + std::to_string(leaf));
    for (int spine = 0; spine < 8; ++spine) {
      cluster.inter.links.push_back({{false, 8 + leaf}, {false, spine}, BytesPerSecond(1600e9)});
    }
    for (int node = 32 * leaf; node < 32 * leaf + 32; ++node) {
      cluster.inter.links.push_back({{true, node}, {false, 8 + leaf}, BytesPerSecond(400e9)});
    }
  }
  return cluster;
}

Cluster oversubscribed() {
  Cluster cluster = cluster_of(InterNodeKind::fat_tree, FabricRouting::adaptive);
  cluster.inter.oversubscription = 4;
  return cluster;
}

struct Kind {
  const char* name;
  Cluster cluster;
};
const Kind& kind_at(std::int64_t index) {
  using enum FabricRouting;
  using K = InterNodeKind;
  static const std::array<Kind, 10> kinds = {{
      {"fat-tree", cluster_of(K::fat_tree, adaptive)},
      {"fat-tree, static", cluster_of(K::fat_tree, static_paths)},
      {"torus", cluster_of(K::torus, adaptive)},
      {"torus, static", cluster_of(K::torus, static_paths)},
      {"dragonfly", cluster_of(K::dragonfly, adaptive)},
      {"dragonfly, static", cluster_of(K::dragonfly, static_paths)},
      {"dragonfly, valiant", cluster_of(K::dragonfly, valiant)},
      {"graph", drawn_cluster(adaptive)},
      {"graph, static", drawn_cluster(static_paths)},
      {"fat-tree, 4:1", oversubscribed()},
  }};
  return kinds[static_cast<std::size_t>(index)];
}

void build(benchmark::State& state) {
  const Cluster& cluster = kind_at(state.range(0)).cluster;
  for (auto _ : state) {
    const TopologyGraph graph = make_topology(cluster);
    benchmark::DoNotOptimize(fabric_tiers(cluster, graph));
  }
  state.SetLabel(kind_at(state.range(0)).name);
}
BENCHMARK(build)->DenseRange(0, 9)->Unit(benchmark::kMillisecond);

void ready_for_simulation(benchmark::State& state) {
  const Cluster& cluster = kind_at(state.range(0)).cluster;
  const TopologyGraph graph = make_topology(cluster);
  for (auto _ : state) benchmark::DoNotOptimize(Fabric::make(cluster, graph));
  state.SetLabel(kind_at(state.range(0)).name);
}
BENCHMARK(ready_for_simulation)->DenseRange(0, 9)->Unit(benchmark::kMillisecond);

// Data-parallel groups over the whole cluster: 8 rings over all nodes, and every pair of nodes in
// an all-to-all.
void first_group(benchmark::State& state) {
  const Cluster& cluster = kind_at(state.range(0)).cluster;
  const TopologyGraph graph = make_topology(cluster);
  for (auto _ : state) {
    state.PauseTiming();
    const FabricTiers tiers = fabric_tiers(cluster, graph);
    state.ResumeTiming();
    benchmark::DoNotOptimize(group_links(tiers, {8, 2048}));
  }
  state.SetLabel(kind_at(state.range(0)).name);
}
BENCHMARK(first_group)->DenseRange(0, 9)->Unit(benchmark::kMillisecond);

void known_group(benchmark::State& state) {
  const Cluster& cluster = kind_at(state.range(0)).cluster;
  const FabricTiers tiers = fabric_tiers(cluster);
  for (auto _ : state) benchmark::DoNotOptimize(group_links(tiers, {8, 64}));
  state.SetLabel(kind_at(state.range(0)).name);
}
BENCHMARK(known_group)->DenseRange(0, 9)->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace trainyard
