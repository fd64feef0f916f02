#include "simulator/reading/memory_timeline.h"

#include <algorithm>
#include <numeric>

namespace trainyard {
namespace {

struct Change {
  Picoseconds time{0};
  Bytes bytes;
  std::int32_t owner = 0;
  std::int32_t place = 0;  // number among all changes
};

// The changes in order of time, then of place. A bucket sort: the time is cut into as many equal
// spans as there are changes, so few fall into each.
std::vector<Change> in_order(const std::vector<Change>& changes) {
  if (changes.empty()) return {};
  const auto earlier = [](const Change& a, const Change& b) { return a.time < b.time; };
  const auto comes_first = [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.place < b.place;
  };
  const Picoseconds last = std::max_element(changes.begin(), changes.end(), earlier)->time;
  const double spans =
      static_cast<double>(changes.size()) / (static_cast<double>(last.count()) + 1);
  const auto span_of = [&](const Change& change) {
    return static_cast<std::size_t>(static_cast<double>(change.time.count()) * spans);
  };
  std::vector<std::size_t> next(changes.size() + 2);  // where the next change of each span goes
  for (const Change& change : changes) ++next[span_of(change) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<Change> sorted(changes.size());
  for (const Change& change : changes) sorted[next[span_of(change)]++] = change;
  auto begin = sorted.begin();
  for (std::size_t span = 0; begin != sorted.end(); ++span) {
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(next[span]);
    if (end - begin > 1) std::sort(begin, end, comes_first);
    begin = end;
  }
  return sorted;
}

std::vector<Change> changes_of(const TaskList& list, std::span<const TaskTimes> times) {
  const auto task = [&](std::int32_t index) { return times[static_cast<std::size_t>(index)]; };
  std::vector<Change> changes;
  changes.reserve(2 * list.buffers.size());
  const auto add = [&](Picoseconds time, Bytes bytes, std::int32_t owner) {
    changes.push_back({time, bytes, owner, static_cast<std::int32_t>(changes.size())});
  };
  for (const Buffer& buffer : list.buffers) {
    const bool from_start = buffer.allocated_by < 0;
    const Picoseconds taken = from_start ? Picoseconds(0) : task(buffer.allocated_by).start;
    const bool stays = buffer.freed_by < 0;
    if (!stays && task(buffer.freed_by).end <= taken) continue;
    add(taken, buffer.bytes, buffer.owner);
    if (!stays) add(task(buffer.freed_by).end, -buffer.bytes, buffer.owner);
  }
  return in_order(changes);
}

// What each owner held at the peak: a second walk, since the first one finds the peak.
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
