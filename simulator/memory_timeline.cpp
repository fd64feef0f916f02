#include "simulator/memory_timeline.h"

#include <algorithm>

namespace trainyard {
namespace {

struct Change {
  Picoseconds time{0};
  Bytes bytes;
  std::int32_t owner = 0;
};

std::vector<Change> changes_of(const TaskList& list, std::span<const TaskTimes> times) {
  const auto task = [&](std::int32_t index) { return times[static_cast<std::size_t>(index)]; };
  std::vector<Change> changes;
  changes.reserve(2 * list.buffers.size());
  for (const Buffer& buffer : list.buffers) {
    const bool from_start = buffer.allocated_by < 0;
    const Picoseconds taken = from_start ? Picoseconds(0) : task(buffer.allocated_by).start;
    const bool stays = buffer.freed_by < 0;
    if (!stays && task(buffer.freed_by).end <= taken) continue;
    changes.push_back({taken, buffer.bytes, buffer.owner});
    if (!stays) changes.push_back({task(buffer.freed_by).end, -buffer.bytes, buffer.owner});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.time < b.time; });
  return changes;
}

// The peak is known after one walk; what each owner held then takes another one.
std::vector<Bytes> held_at(std::span<const Change> changes, Picoseconds time) {
  std::vector<Bytes> held;
  for (const Change& change : changes) {
    if (change.time > time) break;
    const auto owner = static_cast<std::size_t>(change.owner);
    if (owner >= held.size()) held.resize(owner + 1);
    held[owner] += change.bytes;
  }
  return held;
}

}  // namespace

MemoryTimeline memory_timeline(const TaskList& list, std::span<const TaskTimes> times) {
  const std::vector<Change> changes = changes_of(list, times);
  MemoryTimeline memory;
  memory.points.reserve(changes.size() + 1);
  memory.points.push_back({});
  for (const Change& change : changes) {
    if (change.time > memory.points.back().time) {
      memory.points.push_back({change.time, memory.points.back().bytes});
    }
    memory.points.back().bytes += change.bytes;
  }
  memory.peak = *std::max_element(
      memory.points.begin(), memory.points.end(),
      [](const MemoryPoint& a, const MemoryPoint& b) { return a.bytes < b.bytes; });
  memory.at_peak = held_at(changes, memory.peak.time);
  if (memory.peak.bytes.value() > 0) {
    const auto most = std::max_element(memory.at_peak.begin(), memory.at_peak.end());
    memory.owner = static_cast<int>(most - memory.at_peak.begin());
  }
  return memory;
}

}  // namespace trainyard
