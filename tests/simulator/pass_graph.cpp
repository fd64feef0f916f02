#include "tests/simulator/pass_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace trainyard {
namespace {

// Chunks are numbered in the order in which a micro-batch passes them.
class Builder {
 public:
  Builder(PipelineShape shape, const PlayTimes& times, Bytes message)
      : shape_(shape), times_(times) {
    graph_.calls.push_back({CollectiveOperation::send,
                            find_collective_algorithm(CollectiveOperation::send, "direct"),
                            message});
    graph_.ranks.resize(static_cast<std::size_t>(shape.stages));
    graph_.lists.resize(graph_.ranks.size());
  }

  TaskGraph build(const PassList& passes) {
    for (int stage = 0; stage < shape_.stages; ++stage) {
      graph_.ranks[static_cast<std::size_t>(stage)].list = stage;
      for (const Pass& pass : passes[static_cast<std::size_t>(stage)]) add(stage, pass);
    }
    return std::move(graph_);
  }

 private:
  int last_chunk() const { return shape_.stages * shape_.chunks - 1; }

  void add(int stage, const Pass& pass) {
    const int chunk = pass.chunk * shape_.stages + stage;
    const bool forward = pass.kind == PassKind::forward;
    const bool weight = pass.kind == PassKind::weight_gradient;
    std::vector<std::int32_t> after;
    const auto own = done_.find({chunk, pass.microbatch, !weight});
    if (!forward && own != done_.end()) after.push_back(own->second);
    const int from = forward ? chunk - 1 : chunk + 1;
    const int to = forward ? chunk + 1 : chunk - 1;
    if (!weight && from >= 0 && from <= last_chunk()) {
      after.push_back(message(TaskKind::receive, stage, from, chunk, {}));
    }
    const std::int32_t task = list(stage).add({.duration = duration(stage, pass)}, after);
    name(stage, fmt::format("{}{}.{}", forward ? 'F' : weight ? 'W' : 'B', pass.microbatch, chunk));
    if (!weight) done_[{chunk, pass.microbatch, forward}] = task;
    if (!weight && to >= 0 && to <= last_chunk()) {
      const std::vector<std::int32_t> sent_after = {task};
      message(TaskKind::send, stage, chunk, to, sent_after);
    }
  }

  Picoseconds duration(int stage, const Pass& pass) const {
    const PassTimes& t =
        times_.stage_chunk[static_cast<std::size_t>(stage)][static_cast<std::size_t>(pass.chunk)];
    const Picoseconds b = to_picoseconds(t.input_gradient);
    const Picoseconds w = to_picoseconds(t.weight_gradient);
    switch (pass.kind) {
      case PassKind::forward:
        return to_picoseconds(t.forward);
      case PassKind::backward:
        return b + w;
      case PassKind::input_gradient:
        return b;
      case PassKind::weight_gradient:
        return w;
    }
    return {};
  }

  // A group for each boundary and direction; the n-th message of it belongs to micro-batch n.
  std::int32_t message(TaskKind kind, int stage, int from, int to,
                       std::span<const std::int32_t> after) {
    const auto [group, added] =
        groups_.emplace(std::pair(from, to), static_cast<std::int32_t>(graph_.groups.size()));
    if (added) graph_.groups.push_back({from % shape_.stages, to % shape_.stages});
    std::vector<std::int32_t>& channels = graph_.ranks[static_cast<std::size_t>(stage)].groups;
    auto channel = std::find(channels.begin(), channels.end(), group->second);
    if (channel == channels.end()) channel = channels.insert(channel, group->second);
    const bool send = kind == TaskKind::send;
    const std::int32_t task =
        list(stage).add({.kind = kind,
                         .stream = send ? Stream::pipeline : Stream::receive,
                         .channel = static_cast<std::int32_t>(channel - channels.begin()),
                         .call = send ? 0 : -1},
                        after);
    name(stage, fmt::format("{} {}-{}", send ? "send" : "receive", from, to));
    return task;
  }

  TaskList& list(int stage) { return graph_.lists[static_cast<std::size_t>(stage)]; }
  void name(int stage, std::string name) { list(stage).names.push_back(std::move(name)); }

  PipelineShape shape_;
  const PlayTimes& times_;
  TaskGraph graph_;
  std::map<std::pair<int, int>, std::int32_t> groups_;       // by the chunks they join
  std::map<std::tuple<int, int, bool>, std::int32_t> done_;  // chunk, micro-batch, forward
};

}  // namespace

TaskGraph pass_graph(const PassList& passes, PipelineShape shape, const PlayTimes& times,
                     Bytes message) {
  return Builder(shape, times, message).build(passes);
}

std::vector<StageTimes> stage_times(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<StageTimes> stages;
  for (std::size_t rank = 0; rank < graph.ranks.size(); ++rank) {
    const TaskList& list = graph.lists[static_cast<std::size_t>(graph.ranks[rank].list)];
    const auto times = timeline.of(static_cast<int>(rank));
    StageTimes stage{Picoseconds::max(), Picoseconds(0)};
    for (std::size_t task = 0; task < list.tasks.size(); ++task) {
      if (list.tasks[task].kind != TaskKind::compute) continue;
      stage.start = std::min(stage.start, times[task].start);
      stage.end = std::max(stage.end, times[task].end);
    }
    stages.push_back(stage);
  }
  return stages;
}

Picoseconds longest_span(const std::vector<StageTimes>& stages) {
  Picoseconds longest{0};
  for (const StageTimes& stage : stages) longest = std::max(longest, stage.end - stage.start);
  return longest;
}

}  // namespace trainyard
