#include "simulator/alone.h"

#include <cstddef>
#include <utility>

#include "model/program/rank_layout.h"
#include "simulator/simulate.h"

namespace trainyard {
namespace {

// The bytes that a copy in place of the message reads and writes; `members`: of the operation's
// group.
Bytes copied_bytes(const Operation& operation, double members) {
  const Bytes message = operation.message;
  switch (operation.kind) {
    case OperationKind::all_reduce:
      return 4 * message;  // out of the tensor and back
    case OperationKind::reduce_scatter:
      return 2 * message / members;  // this rank's part
    case OperationKind::all_gather:
      return 2 * (message + message / members);  // its part, and that for every member
    case OperationKind::receive:
      return message;  // is filled
    default:
      return 2 * message;
  }
}

// The bandwidth is used in full, because that of a calibrated device was measured with copies.
Seconds copy_time(const Device& device, Bytes bytes) {
  return bytes / device.memory_bandwidth + device.rates.launch;
}

// A rank without peers receives where it sends: among its kernels, unless the stack sends beside
// them.
Stream stream_alone(const Task& task, const Plan& plan) {
  const bool among_kernels = task.kind == TaskKind::receive && !plan.overlap.pipeline;
  return among_kernels ? Stream::compute : task.stream;
}

void replace_peers(const PreparedJob& job, const Plan& plan, StepGraph& step, int stage) {
  const RankLayout layout(plan, job.job.model.kv_heads);
  const auto own = static_cast<std::size_t>(stage);
  for (std::size_t i = 0; i < step.graph.lists[own].tasks.size(); ++i) {
    Task& task = step.graph.lists[own].tasks[i];
    if (task.kind == TaskKind::compute || task.kind == TaskKind::copy) continue;
    const Operation& operation = *step.tasks[own][i].issued.operation;
    const bool in_a_group = operation.group != Group::none;
    const int members = in_a_group ? layout.members(operation.group, 0).size() : 1;
    const Bytes bytes = copied_bytes(operation, members);
    task = {.kind = TaskKind::copy,
            .stream = stream_alone(task, plan),
            .duration = to_picoseconds(copy_time(job.job.cluster.device, bytes))};
  }
}

// A message waits for a peer, a copy in its place for nobody: on a stream of its own all of a step
// would arrive, and take memory, at its start. The executor fills them where its program has them.
TaskList receiving_in_order(const TaskList& list) {
  TaskList out = list;
  out.dependencies.clear();
  out.first_dependency = {0};
  std::int32_t last_kernel = -1;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(list.tasks.size()); ++i) {
    const Task& task = list.tasks[static_cast<std::size_t>(i)];
    for (const std::int32_t other : list.dependencies_of(i)) out.dependencies.push_back(other);
    if (task.stream == Stream::receive && last_kernel >= 0) {
      out.dependencies.push_back(last_kernel);
    }
    out.first_dependency.push_back(static_cast<std::int32_t>(out.dependencies.size()));
    if (task.stream == Stream::compute) last_kernel = i;
  }
  return out;
}

}  // namespace

Expected<AloneStep> simulate_alone(const PreparedJob& job, const Plan& plan, int stage) {
  PreparedJob lone = job;
  lone.job.training.stack.rank_spread = 0;
  auto made = step_graph(lone, plan, true);
  if (!made) return tl::unexpected(made.error());
  AloneStep out{*std::move(made), {}, {}};
  replace_peers(lone, plan, out.step, stage);
  TaskList& own = out.step.graph.lists[static_cast<std::size_t>(stage)];
  own = receiving_in_order(own);
  for (std::size_t i = 0; i < out.step.graph.lists.size(); ++i) {
    if (i == static_cast<std::size_t>(stage)) continue;
    out.step.graph.lists[i] = {};
    out.step.tasks[i].clear();
  }
  out.step.graph.ranks = {{.list = stage, .groups = {}}};
  out.step.graph.groups.clear();
  out.step.graph.copies.clear();
  auto timeline = simulate(out.step.graph);
  if (!timeline) return tl::unexpected(timeline.error());
  out.timeline = *std::move(timeline);
  out.step_time = to_seconds(out.timeline.makespan) + job.job.training.stack.step_overhead;
  return out;
}

}  // namespace trainyard
