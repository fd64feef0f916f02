// The event queue in its steady state (an event out, an event in), and task graphs end to end.
// Items are events and tasks.
#include <benchmark/benchmark.h>

#include <queue>
#include <random>
#include <vector>

#include "simulator/engine/event.h"
#include "simulator/simulate.h"

namespace trainyard {
namespace {

// The baseline of the queue: the standard heap with sequence numbers.
class HeapOfEvents {
 public:
  void push(Picoseconds time, Event event) { heap_.push({time, sequence_++, event}); }
  Events::Entry pop() {
    const Entry top = heap_.top();
    heap_.pop();
    return {top.time, top.event};
  }

 private:
  struct Entry {
    Picoseconds time;
    std::uint64_t sequence;
    Event event;
    bool operator<(const Entry& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };
  std::priority_queue<Entry> heap_;
  std::uint64_t sequence_ = 0;
};

// Durations drawn in advance. With `spread` 0 the cluster is in step, and all events have one time.
std::vector<Picoseconds> durations(std::int64_t spread) {
  std::mt19937_64 random{1};
  std::vector<Picoseconds> all;
  for (int i = 0; i < 1 << 16; ++i) {
    const auto offset = static_cast<std::int64_t>(random() % static_cast<unsigned>(spread + 1));
    all.emplace_back(1000000 + offset);
  }
  return all;
}

template <typename Queue>
void hold(benchmark::State& state) {
  const std::vector<Picoseconds> drawn = durations(state.range(1));
  Queue queue;
  std::uint32_t next = 0;
  for (; next < state.range(0); ++next) {
    queue.push(drawn[next % drawn.size()], Event(EventKind::task_ends, next));
  }
  for (auto _ : state) {
    const auto entry = queue.pop();
    queue.push(entry.time + drawn[next++ % drawn.size()], entry.event);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_TEMPLATE(hold, Events)->ArgsProduct({{1 << 10, 1 << 14, 1 << 20}, {0, 1000000}});
BENCHMARK_TEMPLATE(hold, HeapOfEvents)->ArgsProduct({{1 << 10, 1 << 14, 1 << 20}, {0, 1000000}});

// `layers` times a compute task and a collective of the tensor group of 8, and after every 8 of
// them a message to the next eight ranks. Communication takes no time.
TaskGraph layered(int ranks, int layers) {
  TaskGraph graph;
  graph.calls = {{CollectiveOperation::all_reduce, nullptr, Bytes(1e6)},
                 {CollectiveOperation::send, nullptr, Bytes(1e6)}};
  TaskList list;
  std::vector<std::int32_t> before;
  for (int layer = 0; layer < layers; ++layer) {
    const std::int32_t work = list.add({.duration = Picoseconds(1000)}, before);
    before = {work};
    before = {list.add(
        {.kind = TaskKind::collective, .stream = Stream::tensor, .channel = 0, .call = 0}, before)};
    if (layer % 8 != 7) continue;
    list.add({.kind = TaskKind::send, .stream = Stream::pipeline, .channel = 1, .call = 1}, before);
    before = {list.add({.kind = TaskKind::receive, .stream = Stream::receive, .channel = 2})};
  }
  graph.lists.push_back(std::move(list));
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank % 8 == 0) graph.groups.emplace_back();
    graph.groups.back().push_back(rank);
  }
  const int tensor_groups = ranks / 8;
  for (int rank = 0; rank < ranks; ++rank) {
    graph.groups.push_back({rank, (rank + 8) % ranks});
    graph.ranks.push_back(
        {0, {rank / 8, tensor_groups + rank, tensor_groups + (rank + ranks - 8) % ranks}});
  }
  return graph;
}

void played(benchmark::State& state) {
  const TaskGraph graph =
      layered(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(simulate(graph));
  const auto tasks = static_cast<std::int64_t>(graph.lists[0].tasks.size());
  state.SetItemsProcessed(state.iterations() * tasks * state.range(0));
}

BENCHMARK(played)
    ->ArgNames({"ranks", "layers"})
    ->ArgsProduct({{512, 2048, 8192}, {128}})
    ->ArgsProduct({{512}, {512, 2048}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainyard
