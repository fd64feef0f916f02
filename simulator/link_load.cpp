#include "simulator/link_load.h"

#include <algorithm>
#include <utility>

namespace trainyard {

std::vector<LoadPoint> link_load(const StepGraph& step, const Timeline& timeline, int rank) {
  const TaskRank& of = step.graph.ranks[static_cast<std::size_t>(rank)];
  const std::vector<Task>& tasks = step.graph.lists[static_cast<std::size_t>(of.list)].tasks;
  std::vector<LoadPoint> changes;  // rates that begin and end
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const TaskTimes times = timeline.of(rank)[i];
    if (tasks[i].call < 0 || times.end <= times.start) continue;
    const Bytes message = step.graph.calls[static_cast<std::size_t>(tasks[i].call)].message;
    const BytesPerSecond rate = message / to_seconds(times.end - times.start);
    changes.push_back({times.start, rate});
    changes.push_back({times.end, BytesPerSecond(0) - rate});
  }
  std::ranges::sort(changes, {},
                    [](const LoadPoint& at) { return std::pair(at.time, at.rate.value()); });
  std::vector<LoadPoint> load;
  BytesPerSecond rate;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    rate += changes[i].rate;
    const bool last_of_its_time = i + 1 == changes.size() || changes[i + 1].time > changes[i].time;
    if (last_of_its_time) load.push_back({changes[i].time, std::max(BytesPerSecond(0), rate)});
  }
  return load;
}

}  // namespace trainyard
