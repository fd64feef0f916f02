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
      const std::vector<Pass>& list = passes[static_cast<std::size_t>(stage)];
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::size_t together = list[i].paired ? 2 : 1;
        add(stage, std::span(list).subspan(i, together));
        i += together - 1;
      }
    }
    return std::move(graph_);
  }

 private:
  // Adds one pass, or the two passes of a pair as one task.
  void add(int stage, std::span<const Pass> passes) {
    std::vector<std::int32_t> after;
    Picoseconds time{0};
    std::string names;
    for (const Pass& pass : passes) {
      inputs(stage, pass, after);
      time += duration(stage, pass);
      names += (names.empty() ? "" : "+") + name_of(stage, pass);
    }
    if (passes.size() == 2) time -= to_picoseconds(times_of(stage, passes[0]).hidden);
    const std::int32_t task = list(stage).add({.duration = time}, after);
    name(stage, std::move(names));
    for (const Pass& pass : passes) outputs(stage, pass, task);
  }

  int chunk_of(int stage, const Pass& pass) const {
    return layer_chunk_of(shape_, {stage, pass.chunk});
  }

  std::string name_of(int stage, const Pass& pass) const {
    const bool weight = pass.kind == PassKind::weight_gradient;
    const char kind = pass.kind == PassKind::forward ? 'F' : weight ? 'W' : 'B';
    return fmt::format("{}{}.{}", kind, pass.microbatch, chunk_of(stage, pass));
  }

  // What a pass waits for: its own earlier pass, and the neighbour's pass, which was sent or (at
  // the turn of a V) ran on the same stage.
  void inputs(int stage, const Pass& pass, std::vector<std::int32_t>& after) {
    const int chunk = chunk_of(stage, pass);
    const bool forward = pass.kind == PassKind::forward;
    const bool weight = pass.kind == PassKind::weight_gradient;
    const auto own = done_.find({chunk, pass.microbatch, !weight});
    if (!forward && own != done_.end()) after.push_back(own->second);
    const int from = forward ? chunk - 1 : chunk + 1;
    if (weight || from < 0 || from >= layer_chunks(shape_)) return;
    if (place_of(shape_, pass.microbatch, from).stage != stage) {
      after.push_back(message(TaskKind::receive, stage, pass.microbatch, {from, chunk}, {}));
      return;
    }
    const auto before = done_.find({from, pass.microbatch, forward});
    if (before != done_.end()) after.push_back(before->second);
  }

  void outputs(int stage, const Pass& pass, std::int32_t task) {
    const int chunk = chunk_of(stage, pass);
    const bool forward = pass.kind == PassKind::forward;
    hold(stage, pass, task);
    if (pass.kind == PassKind::weight_gradient) return;
    done_[{chunk, pass.microbatch, forward}] = task;
    const int to = forward ? chunk + 1 : chunk - 1;
    if (to < 0 || to >= layer_chunks(shape_)) return;
    if (place_of(shape_, pass.microbatch, to).stage == stage) return;
    const std::vector<std::int32_t> sent_after = {task};
    message(TaskKind::send, stage, pass.microbatch, {chunk, to}, sent_after);
  }

  // One byte for the activations of a chunk, from its forward pass to its last pass.
  void hold(int stage, const Pass& pass, std::int32_t task) {
    std::vector<Buffer>& buffers = list(stage).buffers;
    const std::pair key(chunk_of(stage, pass), pass.microbatch);
    if (pass.kind == PassKind::forward) {
      held_[key] = buffers.size();
      buffers.push_back({Bytes(1), task, -1});
    } else if (pass.kind != PassKind::input_gradient) {
      const auto found = held_.find(key);  // none in a list whose order is wrong
      if (found != held_.end()) buffers[found->second].freed_by = task;
    }
  }

  const PassTimes& times_of(int stage, const Pass& pass) const {
    return times_
        .stage_chunk[static_cast<std::size_t>(stage)][static_cast<std::size_t>(pass.chunk)];
  }

  Picoseconds duration(int stage, const Pass& pass) const {
    const PassTimes& t = times_of(stage, pass);
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

  // One group for each boundary and direction, and for each way if there are two. Its messages are
  // in the order of the micro-batches.
  std::int32_t message(TaskKind kind, int stage, int microbatch, std::pair<int, int> chunks,
                       std::span<const std::int32_t> after) {
    const auto [from, to] = chunks;
    const auto [group, added] = groups_.emplace(std::tuple(from, to, is_return(shape_, microbatch)),
                                                static_cast<std::int32_t>(graph_.groups.size()));
    if (added) {
      graph_.groups.push_back(
          {place_of(shape_, microbatch, from).stage, place_of(shape_, microbatch, to).stage});
    }
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
  std::map<std::tuple<int, int, bool>, std::int32_t> groups_;  // by the chunks they join
  std::map<std::pair<int, int>, std::size_t> held_;            // chunk, micro-batch -> buffer
  std::map<std::tuple<int, int, bool>, std::int32_t> done_;    // chunk, micro-batch, forward
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
