#include "simulator/step/link_load.h"

#include <algorithm>
#include <utility>

namespace trainyard {
namespace {

// A call that begins, or ends.
struct RateChange {
  Picoseconds time{0};
  bool begins = false;
  std::size_t call = 0;
  BytesPerSecond rate;
};

std::vector<RateChange> rate_changes(const StepGraph& step, const Timeline& timeline, int rank,
                                     bool hides) {
  const std::vector<Task>& tasks = step.graph.lists[step.graph.list_of(rank)].tasks;
  std::vector<RateChange> changes;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const TaskTimes times = timeline.of(rank)[i];
    if (tasks[i].call < 0 || times.end <= times.start) continue;
    const auto call = static_cast<std::size_t>(tasks[i].call);
    const double share = step.graph.load_of(rank, tasks[i]);
    const Seconds shown = to_seconds(times.end - times.start);
    const Seconds time = hides ? shown + step.loads[call].hidden * share : shown;
    const BytesPerSecond rate = step.loads[call].sent * share / time;
    changes.push_back({times.start, true, call, rate});
    changes.push_back({times.end, false, call, rate});
  }
  std::ranges::sort(changes, {},
                    [](const RateChange& at) { return std::pair(at.time, at.begins); });
  return changes;
}

// The calls that are under way; a few at most.
class CallsUnderWay {
 public:
  void take(const RateChange& change) {
    if (change.begins) {
      calls_.emplace_back(change.call, change.rate);
      return;
    }
    calls_.erase(std::ranges::find(calls_, std::pair(change.call, change.rate)));
  }
  BytesPerSecond rate() const {
    BytesPerSecond sum;
    for (const auto& [call, rate] : calls_) sum += rate;
    return sum;
  }
  // The bandwidth of the links that these calls use, inside the domain plus out of it.
  BytesPerSecond most(const std::vector<CallLoad>& loads) const {
    BytesPerSecond inside, across;
    for (const auto& [call, rate] : calls_) {
      inside = std::max(inside, loads[call].inside);
      across = std::max(across, loads[call].across);
    }
    return inside + across;
  }

 private:
  std::vector<std::pair<std::size_t, BytesPerSecond>> calls_;
};

std::vector<LoadPoint> rates_over_time(const StepGraph& step, const Timeline& timeline, int rank,
                                       bool predicted) {
  const std::vector<RateChange> changes = rate_changes(step, timeline, rank, predicted);
  std::vector<LoadPoint> load;
  CallsUnderWay calls;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    calls.take(changes[i]);
    const bool last_of_its_time = i + 1 == changes.size() || changes[i + 1].time > changes[i].time;
    if (!last_of_its_time) continue;
    const BytesPerSecond rate = calls.rate();
    load.push_back({changes[i].time, predicted ? std::min(rate, calls.most(step.loads)) : rate});
  }
  return load;
}

}  // namespace

std::vector<LoadPoint> link_load(const StepGraph& step, const Timeline& timeline, int rank) {
  return rates_over_time(step, timeline, rank, true);
}

std::vector<LoadPoint> measured_link_load(const StepGraph& step, const Timeline& timeline,
                                          int rank) {
  return rates_over_time(step, timeline, rank, false);
}

}  // namespace trainyard
