#include "model/schedule/span.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/schedule/play.h"
#include "model/schedule/rounds.h"

namespace trainyard {

Expected<void> accepts_one_chunk(PipelineShape shape, std::string_view name) {
  if (shape.chunks == 1) return {};
  return failure("/plan/virtual_stages",
                 fmt::format("found {} with {}, allowed 1", shape.chunks, name));
}

Seconds RoundTrip::exposed() const {
  const Seconds none;
  if (once) return std::max(none, time - std::min(hidden_filling, hidden_draining));
  return std::max(none, time - hidden_filling) + std::max(none, time - hidden_draining);
}

namespace {

// F and B + W of one chunk.
struct ChunkTimes {
  Seconds forward, backward;
  Seconds total() const { return forward + backward; }
};
ChunkTimes operator+(ChunkTimes a, ChunkTimes b) {
  return {a.forward + b.forward, a.backward + b.backward};
}
ChunkTimes operator-(ChunkTimes a, ChunkTimes b) {
  return {a.forward - b.forward, a.backward - b.backward};
}
ChunkTimes operator*(double times, ChunkTimes all) {
  return {times * all.forward, times * all.backward};
}
ChunkTimes slower(ChunkTimes a, ChunkTimes b) {
  return {std::max(a.forward, b.forward), std::max(a.backward, b.backward)};
}

// The times of each chunk, from times of stages whose chunks are alike or from times of all chunks.
class TimesOfChunks {
 public:
  TimesOfChunks(PipelineShape shape, std::span<const PassTimes> times)
      : times_(times),
        chunks_(shape.chunks),
        are_unlike_(shape.chunks > 1 && times.size() > static_cast<std::size_t>(shape.stages)) {}

  ChunkTimes operator()(int stage, int chunk) const {
    const PassTimes& of =
        times_[static_cast<std::size_t>(are_unlike_ ? stage * chunks_ + chunk : stage)];
    const double share = are_unlike_ ? 1.0 : 1.0 / chunks_;
    return {of.forward * share, of.backward() * share};
  }
  // Sum over the chunks of a stage before its last one.
  ChunkTimes before_last(int stage) const {
    ChunkTimes sum;
    for (int chunk = 0; chunk + 1 < chunks_; ++chunk) sum = sum + (*this)(stage, chunk);
    return sum;
  }

 private:
  std::span<const PassTimes> times_;
  int chunks_;
  bool are_unlike_;
};

struct RingTimes {
  ChunkTimes pace;   // Σ over the chunks before the last of the slowest stage's
  ChunkTimes first;  // the slowest stage's first chunk, where it is not the last
  Seconds last;      // Σ over the stages of F + B + W of the last chunk
};

RingTimes ring_times(PipelineShape shape, const TimesOfChunks& times) {
  RingTimes ring;
  for (int chunk = 0; chunk + 1 < shape.chunks; ++chunk) {
    ChunkTimes slowest;
    for (int stage = 0; stage < shape.stages; ++stage) {
      slowest = slower(slowest, times(stage, chunk));
    }
    ring.pace = ring.pace + slowest;
    if (chunk == 0) ring.first = slowest;
  }
  for (int stage = 0; stage < shape.stages; ++stage) {
    ring.last += times(stage, shape.chunks - 1).total();
  }
  return ring;
}

// How long a stage that does not set the pace waits in the rounds: for p micro-batches of every
// round, minus the one that found it idle in the first round.
ChunkTimes waits_in_rounds(PipelineShape shape, const RingTimes& ring, ChunkTimes first,
                           ChunkTimes before_last) {
  if (shape.chunks == 1) return {};
  return shape.stages * (ring.pace - before_last) - (ring.first - first);
}

// With one chunk a stage: the longest way of a micro-batch that turns back before the last stage.
// Stage i runs a = min(m, p − i) forward passes before its first backward pass, and these come at
// the pace of the slowest stage before it. Then that backward pass goes back to a stage j, which
// still has to run m − a_j forward and m − 1 backward passes. While the pipeline drains, the same
// holds with forward and backward passes exchanged.
Seconds span_with_early_turns(PipelineShape shape, std::span<const PassTimes> times) {
  const int m = shape.microbatches;
  Seconds there_and_back, slowest_forward, slowest_backward, left_back, left_ahead, longest;
  for (int stage = 0; stage < shape.stages; ++stage) {
    const Seconds forward = times[static_cast<std::size_t>(stage)].forward;
    const Seconds backward = times[static_cast<std::size_t>(stage)].backward();
    const int in_flight = std::min(m, shape.stages - stage);
    there_and_back += forward + backward;
    slowest_forward = std::max(slowest_forward, forward);
    slowest_backward = std::max(slowest_backward, backward);
    left_back = std::max(left_back, (m - 1) * backward + (m - in_flight) * forward);
    left_ahead = std::max(left_ahead, (m - 1) * forward + (m - in_flight) * backward);
    const Seconds filling = (in_flight - 1) * slowest_forward + left_back;
    const Seconds draining = (in_flight - 1) * slowest_backward + left_ahead;
    longest = std::max(longest, there_and_back + std::max(filling, draining));
  }
  return longest;
}

}  // namespace

Seconds one_f_one_b_span(PipelineShape shape, std::span<const PassTimes> all) {
  const bool of_chunks = all.size() > static_cast<std::size_t>(shape.stages);
  if (of_chunks && shape.stages <= kMostStagesInRounds && chunks_are_unlike(shape, all)) {
    return span_of_rounds(shape, all);
  }
  const TimesOfChunks times(shape, all);
  const RingTimes ring = ring_times(shape, times);
  const int m = shape.microbatches;
  const int rounds = (shape.chunks - 1) * shape.stages;
  Seconds behind = ring.last;
  Seconds before;
  Seconds longest = shape.chunks == 1 ? span_with_early_turns(shape, all) : Seconds(0);
  for (int stage = 0; stage < shape.stages; ++stage) {
    const ChunkTimes first = times(stage, 0);
    const ChunkTimes last = times(stage, shape.chunks - 1);
    const ChunkTimes before_last = times.before_last(stage);
    behind -= last.total();
    const int stages_behind = shape.stages - 1 - stage;
    const int on_their_way = shape.chunks == 1 ? stages_behind : 2 * stages_behind;
    const int hidden = std::min(on_their_way, m - 1);
    // Meanwhile: others of the group in the last chunk, then the next group in the first chunk.
    const int of_last = std::min(hidden, shape.stages - 1);
    const ChunkTimes passes = of_last * last + (hidden - of_last) * first -
                              waits_in_rounds(shape, ring, first, before_last);
    const RoundTrip trip = {.time = behind,
                            .hidden_filling = passes.forward,
                            .hidden_draining = passes.backward,
                            .once = m <= (on_their_way + rounds + 1) / shape.chunks};
    const ChunkTimes own = before_last + last;
    longest = std::max(longest, before + m * own.total() + trip.exposed());
    before += first.total();
  }
  return longest;
}

namespace {

Played played(const Schedule& schedule, PipelineShape shape, std::span<const PassTimes> times) {
  return play(schedule.passes(shape), shape, play_times(shape, times)).value();
}

}  // namespace

Seconds longest_span(const Schedule& schedule, PipelineShape shape,
                     std::span<const PassTimes> times) {
  if (schedule.closed_span != nullptr) return schedule.closed_span(shape, times);
  return played(schedule, shape, times).longest_span;
}

Seconds makespan(const Schedule& schedule, PipelineShape shape, std::span<const PassTimes> times) {
  if (schedule.closed_makespan != nullptr) return schedule.closed_makespan(shape, times);
  return played(schedule, shape, times).makespan;
}

}  // namespace trainyard
