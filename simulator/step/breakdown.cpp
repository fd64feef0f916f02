#include "simulator/step/breakdown.h"

#include <algorithm>
#include <array>
#include <span>

namespace trainyard {
namespace {

bool computes(const Task& task) { return task.kind == TaskKind::compute; }

class RankBreakdown {
 public:
  RankBreakdown(const StepGraph& step, const Timeline& timeline, int rank)
      : step_(step),
        rank_(rank),
        list_(step.graph.lists[step.graph.list_of(rank)]),
        before_on_stream_(list_.before_on_stream()),
        tasks_(step.tasks[step.graph.list_of(rank)]),
        times_(timeline.of(rank)),
        updates_on_host_(std::any_of(step.program->buffers.begin(), step.program->buffers.end(),
                                     [](const ProgramBuffer& buffer) {
                                       return buffer.role == BufferRole::optimizer &&
                                              buffer.away != OffloadTarget::none;
                                     })) {}

  Breakdown between(Picoseconds start, Picoseconds end) {
    Picoseconds at = start;
    for (std::size_t i = 0; i < list_.tasks.size(); ++i) {
      if (list_.tasks[i].stream != Stream::compute || times_[i].end <= start) continue;
      add_gap(static_cast<std::int32_t>(i), at, times_[i].start);
      add_task(i);
      at = times_[i].end;
    }
    add_end(at, end);
    return parts_;
  }

 private:
  void add_task(std::size_t index) {
    const Seconds time = to_seconds(times_[index].end - times_[index].start);
    if (!computes(list_.tasks[index])) return add_wait(static_cast<std::int32_t>(index), time);
    const Task& of = list_.tasks[index];
    const Seconds own = to_seconds(of.duration) * step_.graph.load_of(rank_, of);
    const StepTask& task = tasks_[index];
    if (task.kind == StepTaskKind::launch) {
      parts_.launch += own;
    } else if (task.kind == StepTaskKind::update_overhead ||
               task.issued.operation->phase == Phase::update) {
      (updates_on_host_ ? parts_.offload : parts_.optimizer) += own;
    } else {
      const Seconds mean = own / step_.kernel_stretch;
      kernel_part(task) += mean;
      parts_.other += own - mean;
    }
    add_slowdown(index, time - own);
  }

  Seconds& kernel_part(const StepTask& task) {
    if (task.issued.operation->recomputed) return parts_.recompute;
    return task.issued.call->layer >= 0 ? parts_.compute : parts_.embedding_head;
  }

  // Books the time that a kernel lost: to the exchange beside it, else to its device.
  void add_slowdown(std::size_t index, Seconds lost) {
    if (lost == Seconds(0)) return;
    const auto beside = [&](Stream stream) { return is_beside(stream, times_[index]); };
    if (lost > Seconds(0) && (beside(Stream::data) || beside(Stream::embedding))) {
      parts_.data_parallel += lost;
    } else if (lost > Seconds(0) && beside(Stream::context)) {
      parts_.context_parallel += lost;
    } else {
      parts_.other += lost;
    }
  }

  // Whether a task of the stream overlaps the interval. Requires: asked in order of time.
  bool is_beside(Stream stream, TaskTimes interval) {
    std::size_t& next = beside_[static_cast<std::size_t>(stream)];
    const auto over = [&](std::size_t i) {
      return list_.tasks[i].stream != stream || times_[i].end <= interval.start;
    };
    while (next < list_.tasks.size() && over(next)) ++next;
    return next < list_.tasks.size() && times_[next].start < interval.end;
  }

  // Books a gap of the compute stream before a task: to the dependency that ended last.
  void add_gap(std::int32_t task, Picoseconds from, Picoseconds to) {
    if (to > from) wait_for(last_of(list_.dependencies_of(task)), from, to);
  }

  std::int32_t last_of(std::span<const std::int32_t> tasks) const {
    std::int32_t last = -1;
    for (const std::int32_t other : tasks) last = later(last, other);
    return last;
  }

  std::int32_t later(std::int32_t a, std::int32_t b) const {
    if (a < 0 || b < 0) return std::max(a, b);
    return times_[static_cast<std::size_t>(b)].end > times_[static_cast<std::size_t>(a)].end ? b
                                                                                             : a;
  }

  // Books the time in which the rank waited for `task`; before that began, for what it waited for.
  void wait_for(std::int32_t task, Picoseconds from, Picoseconds to) {
    while (task >= 0 && to > from) {
      const Picoseconds begun = std::clamp(times_[static_cast<std::size_t>(task)].start, from, to);
      add_wait(task, to_seconds(to - begun));
      to = begun;
      task = later(last_of(list_.dependencies_of(task)),
                   before_on_stream_[static_cast<std::size_t>(task)]);
    }
    parts_.bubble += to_seconds(to - from);
  }

  // Books the time after the last kernel: first to the rank's own exchanges, the rest as bubble.
  void add_end(Picoseconds from, Picoseconds to) {
    std::int32_t last = -1;
    for (std::size_t i = 0; i < list_.tasks.size(); ++i) {
      if (times_[i].end <= from) continue;
      if (last < 0 || times_[i].end > times_[static_cast<std::size_t>(last)].end) {
        last = static_cast<std::int32_t>(i);
      }
    }
    if (last >= 0) {
      const Picoseconds until = std::min(to, times_[static_cast<std::size_t>(last)].end);
      wait_for(last, from, until);
      from = until;
    }
    parts_.bubble += to_seconds(to - from);
  }

  void add_wait(std::int32_t index, Seconds time) {
    const Task& task = list_.tasks[static_cast<std::size_t>(index)];
    const StepTask& what = tasks_[static_cast<std::size_t>(index)];
    if (what.issued.operation == nullptr) {
      parts_.other += time;
      return;
    }
    const bool to_other_stages = task.kind == TaskKind::receive || joins_stages(task, index);
    const Seconds moving =
        to_other_stages ? std::min(time, alone(index) * step_.graph.load_of(rank_, task)) : time;
    part_of(what, task) += moving;
    parts_.bubble += time - moving;
  }

  bool joins_stages(const Task& task, std::int32_t index) const {
    if (task.kind != TaskKind::collective) return false;
    const Group group = tasks_[static_cast<std::size_t>(index)].issued.operation->group;
    return group == Group::model || group == Group::tied_embedding || group == Group::mirror ||
           group == Group::all;
  }

  // The time of an exchange without other traffic. A receive has no call; its message is taken to
  // be the one of the same size that some stage sends.
  Seconds alone(std::int32_t index) const {
    const Task& task = list_.tasks[static_cast<std::size_t>(index)];
    if (task.call >= 0) return step_.alone[static_cast<std::size_t>(task.call)];
    const Bytes message = tasks_[static_cast<std::size_t>(index)].issued.operation->message;
    for (std::size_t call = 0; call < step_.graph.calls.size(); ++call) {
      const Call& candidate = step_.graph.calls[call];
      if (candidate.operation == CollectiveOperation::send && candidate.message == message) {
        return step_.alone[call];
      }
    }
    return Seconds(0);
  }

  Seconds& part_of(const StepTask& what, const Task& task) {
    const Operation& operation = *what.issued.operation;
    if (operation.kind == OperationKind::copy) return parts_.offload;
    if (operation.recomputed) return parts_.recompute;
    if (operation.phase == Phase::update) return parts_.data_parallel;
    switch (operation.group) {
      case Group::tensor:
      case Group::kv_head:
        return parts_.tensor_parallel;
      case Group::context:
        return parts_.context_parallel;
      case Group::expert:
      case Group::expert_tensor:
        return parts_.expert_parallel;
      default:
        break;
    }
    const bool message = task.kind == TaskKind::send || task.kind == TaskKind::receive;
    return message ? parts_.pipeline : parts_.data_parallel;
  }

  const StepGraph& step_;
  int rank_ = 0;
  const TaskList& list_;
  std::vector<std::int32_t> before_on_stream_;
  const std::vector<StepTask>& tasks_;
  std::span<const TaskTimes> times_;
  bool updates_on_host_ = false;
  std::array<std::size_t, kStreams> beside_{};
  Breakdown parts_;
};

}  // namespace

Picoseconds busy_time(const StepGraph& step, const Timeline& timeline, int rank) {
  const std::vector<Task>& tasks = step.graph.lists[step.graph.list_of(rank)].tasks;
  const std::span<const TaskTimes> times = timeline.of(rank);
  Picoseconds busy{0};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (computes(tasks[i])) busy += times[i].end - times[i].start;
  }
  return busy;
}

Breakdown breakdown_of(const StepGraph& step, const Timeline& timeline, int rank, Picoseconds start,
                       Picoseconds end) {
  return RankBreakdown(step, timeline, rank).between(start, end);
}

}  // namespace trainyard
