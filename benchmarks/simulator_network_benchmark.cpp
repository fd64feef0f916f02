// The network at both grains, on nodes of 8 devices with 8 NICs below a fat tree whose leaves are
// 2:1 oversubscribed, so that every link that can be full is tracked. Items are flows or tasks.
#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

#include "model/cluster/topology_graph.h"
#include "simulator/simulate.h"

namespace trainyard {
namespace {

Cluster cluster_of(int ranks) {
  Cluster cluster;
  cluster.devices_per_node = 8;
  cluster.nodes = ranks / 8;
  cluster.nvlink_domain = 8;
  cluster.intra = {IntraNodeKind::nvswitch, BytesPerSecond(450e9), Seconds(3e-6)};
  cluster.inter = {.kind = InterNodeKind::fat_tree,
                   .nics_per_node = 8,
                   .bandwidth = BytesPerSecond(50e9),
                   .oversubscription = 2};
  return cluster;
}

Task collective(std::int32_t channel, std::int32_t call, Stream stream) {
  return {.kind = TaskKind::collective, .stream = stream, .channel = channel, .call = call};
}

Call ring(double bytes) {
  const auto operation = CollectiveOperation::all_reduce;
  return {operation, find_collective_algorithm(operation, "ring"), Bytes(bytes)};
}

// All ranks in one group.
TaskGraph one_group(int ranks, const TaskList& list, const Call& call) {
  TaskGraph graph{
      .lists = {list}, .groups = {TaskGroup(static_cast<std::size_t>(ranks))}, .calls = {call}};
  std::iota(graph.groups[0].begin(), graph.groups[0].end(), 0);
  graph.ranks.assign(static_cast<std::size_t>(ranks), {0, {0}});
  return graph;
}

// One ring all-reduce of 64 MiB over all ranks; every chunk of every step is a flow.
void message_ring(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const Cluster cluster = cluster_of(ranks);
  const TopologyGraph topology = make_topology(cluster);
  TaskList list;
  list.add(collective(0, 0, Stream::data));
  const TaskGraph graph = one_group(ranks, list, ring(64.0 * 1048576));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        simulate(graph, {.network = NetworkModel{cluster, topology, NetworkGrain::message}}));
  }
  state.SetItemsProcessed(state.iterations() * 2 * (ranks - 1) * ranks);
}
BENCHMARK(message_ring)
    ->ArgName("ranks")
    ->Arg(64)
    ->Arg(256)
    ->Arg(512)
    ->Arg(1024)
    ->Arg(2048)
    ->Arg(4096)
    ->Unit(benchmark::kMillisecond);

// `layers` layers with compute and three all-reduces of 32 MiB over all ranks each.
void collective_layers(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const Cluster cluster = cluster_of(ranks);
  const TopologyGraph topology = make_topology(cluster);
  TaskList list;
  std::vector<std::int32_t> before;
  for (int i = 0; i < 3 * state.range(1); ++i) {
    const std::int32_t work = list.add({.duration = Picoseconds(100000000)}, before);
    before = {list.add(collective(0, 0, Stream::data), std::vector<std::int32_t>{work})};
  }
  const TaskGraph graph = one_group(ranks, list, ring(32.0 * 1048576));
  for (auto _ : state)
    benchmark::DoNotOptimize(simulate(graph, {.network = NetworkModel{cluster, topology}}));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(list.tasks.size()) *
                          ranks);
}
BENCHMARK(collective_layers)
    ->ArgNames({"ranks", "layers"})
    ->ArgsProduct({{64, 256, 512, 1024, 2048}, {96}})
    ->ArgsProduct({{512}, {192, 384, 768}})
    ->Unit(benchmark::kMillisecond);

// The communication of a step with p stages, t = 8 and D replicas: tensor-parallel collectives
// between compute in every micro-batch and layer, messages between stages, and at the end the
// all-reduce of each layer's gradients beside the last backward pass.
class Step {
 public:
  Step(int stages, int replicas, int microbatches, int layers)
      : stages_(stages), replicas_(replicas), microbatches_(microbatches), layers_(layers) {
    const auto gather = CollectiveOperation::all_gather;
    const auto send = CollectiveOperation::send;
    graph_.calls = {{gather, find_collective_algorithm(gather, "ring"), Bytes(64e6)},
                    {send, find_collective_algorithm(send, "direct"), Bytes(8e6)},
                    ring(400e6)};
    for (int stage = 0; stage < stages; ++stage) graph_.lists.push_back(list_of(stage));
    add_groups();
  }
  int ranks() const { return 8 * replicas_ * stages_; }
  const TaskGraph& graph() const { return graph_; }
  std::int64_t tasks() const {
    std::int64_t all = 0;
    for (const TaskList& list : graph_.lists) {
      all += static_cast<std::int64_t>(list.tasks.size()) * 8 * replicas_;
    }
    return all;
  }

 private:
  // The channels of a rank: tensor, data, from the previous stage, to it, from the next stage, to
  // it.
  enum Channel { tensor, data, from_before, to_before, from_next, to_next };

  TaskList list_of(int stage) const {
    TaskList list;
    // 1F1B: `ahead` forward passes first, then one forward, one backward.
    const int ahead = std::min(microbatches_, stages_ - stage);
    for (int i = 0; i < ahead; ++i) add_pass(list, stage, true, false);
    for (int i = 0; i < microbatches_; ++i) {
      add_pass(list, stage, false, i + 1 == microbatches_);
      if (i + ahead < microbatches_) add_pass(list, stage, true, false);
    }
    return list;
  }

  void add_pass(TaskList& list, int stage, bool forward, bool last) const {
    std::vector<std::int32_t> before;
    if (forward ? stage > 0 : stage + 1 < stages_) {
      before = {list.add({.kind = TaskKind::receive,
                          .stream = Stream::receive,
                          .channel = forward ? from_before : from_next})};
    }
    for (int i = 0; i < layers_ * (forward ? 1 : 2); ++i) {
      before = {list.add({.duration = Picoseconds(300000000)}, before)};
      before = {list.add(collective(tensor, 0, Stream::tensor), before)};
      if (last && i % 2 == 1) list.add(collective(data, 2, Stream::data), before);
    }
    if (forward ? stage + 1 < stages_ : stage > 0) {
      list.add({.kind = TaskKind::send,
                .stream = Stream::pipeline,
                .channel = forward ? to_next : to_before,
                .call = 1},
               before);
    }
  }

  std::int32_t rank(int stage, int replica, int place) const {
    return (stage * replicas_ + replica) * 8 + place;
  }
  std::int32_t add_group(TaskGroup group) {
    graph_.groups.push_back(std::move(group));
    return static_cast<std::int32_t>(graph_.groups.size()) - 1;
  }

  void add_groups() {
    graph_.ranks.resize(static_cast<std::size_t>(ranks()));
    for (int r = 0; r < ranks(); ++r) {
      TaskRank& rank = graph_.ranks[static_cast<std::size_t>(r)];
      rank.list = r / 8 / replicas_;
      rank.groups.assign(6, 0);
      if (r % 8 == 0) add_group({});
      graph_.groups.back().push_back(r);
      rank.groups[tensor] = static_cast<std::int32_t>(graph_.groups.size()) - 1;
    }
    for (int stage = 0; stage < stages_; ++stage) {
      for (int place = 0; place < 8; ++place) add_data_group(stage, place);
      for (int i = 0; i < 8 * replicas_ && stage + 1 < stages_; ++i) {
        join(rank(stage, i / 8, i % 8), rank(stage + 1, i / 8, i % 8));
      }
    }
  }

  void add_data_group(int stage, int place) {
    TaskGroup group;
    for (int replica = 0; replica < replicas_; ++replica) {
      group.push_back(rank(stage, replica, place));
    }
    const std::int32_t id = add_group(group);
    for (const std::int32_t member : group) {
      graph_.ranks[static_cast<std::size_t>(member)].groups[data] = id;
    }
  }

  void join(std::int32_t lower, std::int32_t upper) {
    const std::int32_t up = add_group({lower, upper});
    const std::int32_t down = add_group({upper, lower});
    graph_.ranks[static_cast<std::size_t>(lower)].groups[to_next] = up;
    graph_.ranks[static_cast<std::size_t>(upper)].groups[from_before] = up;
    graph_.ranks[static_cast<std::size_t>(upper)].groups[to_before] = down;
    graph_.ranks[static_cast<std::size_t>(lower)].groups[from_next] = down;
  }

  int stages_, replicas_, microbatches_, layers_;
  TaskGraph graph_;
};

void whole_step(benchmark::State& state) {
  const Step step(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                  static_cast<int>(state.range(2)), static_cast<int>(state.range(3)));
  const Cluster cluster = cluster_of(step.ranks());
  const TopologyGraph topology = make_topology(cluster);
  for (auto _ : state)
    benchmark::DoNotOptimize(simulate(step.graph(), {.network = NetworkModel{cluster, topology}}));
  state.SetItemsProcessed(state.iterations() * step.tasks());
}
BENCHMARK(whole_step)
    ->ArgNames({"stages", "replicas", "microbatches", "layers"})
    ->Args({16, 8, 16, 8})
    ->Args({16, 32, 16, 8})
    ->Args({16, 128, 16, 8})  // Llama-405B on 16,384 devices
    ->Args({16, 8, 64, 8})
    ->Args({16, 8, 16, 32})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainyard
