#include "simulator/engine/compute_clock.h"

#include <algorithm>
#include <cmath>

namespace trainyard {
namespace {

constexpr double kUnits = 0x1p30;  // units of fixed-point contention
constexpr double kBothDirections = 2;

std::int64_t in_units(double contention) { return std::llround(contention * kUnits); }

}  // namespace

ComputeClock::ComputeClock(const Conditions& conditions, std::size_t ranks, Events& events)
    : conditions_(conditions), events_(events), ranks_(ranks) {
  for (const SpeedChange& change : conditions.speeds) {
    ranks_[static_cast<std::size_t>(change.rank)].speeds.push_back(change);
  }
  for (RankClock& clock : ranks_) {
    std::stable_sort(clock.speeds.begin(), clock.speeds.end(),
                     [](const SpeedChange& a, const SpeedChange& b) { return a.from < b.from; });
  }
}

void ComputeClock::begin(StreamId stream, std::int32_t task, Picoseconds duration) {
  RankClock& clock = ranks_[static_cast<std::size_t>(rank_of(stream))];
  clock.stream = stream;
  clock.running = true;
  clock.updated = events_.now();
  clock.left = static_cast<double>(duration.count()) / speed(clock) *
               jitter_factor(conditions_, rank_of(stream), task);
  schedule(clock);
}

void ComputeClock::communication_begins(std::int32_t rank, double contention) {
  add_contention(rank, in_units(contention));
}

void ComputeClock::communication_ends(std::int32_t rank, double contention) {
  add_contention(rank, -in_units(contention));
}

void ComputeClock::add_contention(std::int32_t rank, std::int64_t contention) {
  RankClock& clock = ranks_[static_cast<std::size_t>(rank)];
  const double before = rate(clock);
  advance(clock);
  clock.contention += contention;
  if (clock.running && rate(clock) != before) schedule(clock);
}

bool ComputeClock::ends(Event event) {
  RankClock& clock = ranks_[static_cast<std::size_t>(rank_of(event.index()))];
  if (!event.is_version(clock.version)) return false;
  clock.running = false;
  return true;
}

// Progress per unit of time. The contention of calls under way adds up, but only to that of one
// send and one receive: more calls share the links, and last longer for it.
double ComputeClock::rate(const RankClock& clock) const {
  const double contention = static_cast<double>(clock.contention) / kUnits;
  return std::max(0.0, 1 - conditions_.overlap_slowdown * std::min(contention, kBothDirections));
}

double ComputeClock::speed(RankClock& clock) const {
  for (; clock.next_speed < clock.speeds.size(); ++clock.next_speed) {
    const SpeedChange& change = clock.speeds[clock.next_speed];
    if (change.from > events_.now()) break;
    clock.speed = change.speed;
  }
  return clock.speed;
}

void ComputeClock::advance(RankClock& clock) const {
  const Picoseconds passed = events_.now() - clock.updated;
  clock.left -= rate(clock) * static_cast<double>(passed.count());
  clock.updated = events_.now();
}

// If the rate is 0, no end is scheduled: the end of the communication will reschedule the task.
void ComputeClock::schedule(RankClock& clock) {
  ++clock.version;
  const double current = rate(clock);
  if (current <= 0 && clock.left > 0) return;
  const Picoseconds takes =
      clock.left > 0 ? rounded_picoseconds(clock.left / current) : Picoseconds(0);
  events_.push_after(takes, Event(EventKind::task_ends, clock.stream, clock.version));
}

}  // namespace trainyard
