#include "model/schedule/span.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/schedule/play.h"

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

struct ChunkTotals {
  Seconds sum;                                // Σ T_i / v
  Seconds slowest_forward, slowest_backward;  // of one chunk
};

ChunkTotals chunk_totals(PipelineShape shape, std::span<const PassTimes> times) {
  ChunkTotals totals;
  for (const PassTimes& stage : times) {
    totals.sum += stage.total();
    totals.slowest_forward = std::max(totals.slowest_forward, stage.forward);
    totals.slowest_backward = std::max(totals.slowest_backward, stage.backward());
  }
  totals.sum /= shape.chunks;
  totals.slowest_forward /= shape.chunks;
  totals.slowest_backward /= shape.chunks;
  return totals;
}

}  // namespace

Seconds one_f_one_b_span(PipelineShape shape, std::span<const PassTimes> times) {
  const ChunkTotals totals = chunk_totals(shape, times);
  const int m = shape.microbatches;
  const double share = 1.0 / shape.chunks;
  const int rounds = (shape.chunks - 1) * shape.stages;
  Seconds behind = totals.sum;
  Seconds before;
  Seconds longest;
  int stages_behind = shape.stages;
  for (const PassTimes& stage : times) {
    const Seconds forward = stage.forward * share;
    const Seconds backward = stage.backward() * share;
    behind -= forward + backward;
    --stages_behind;
    const int on_their_way = shape.chunks == 1 ? stages_behind : 2 * stages_behind;
    const int hidden = std::min(on_their_way, m - 1);
    const RoundTrip trip = {
        .time = behind,
        .hidden_filling = hidden * forward - rounds * (totals.slowest_forward - forward),
        .hidden_draining = hidden * backward - rounds * (totals.slowest_backward - backward),
        .once = m <= (on_their_way + rounds + 1) / shape.chunks};
    longest = std::max(longest, before + m * stage.total() + trip.exposed());
    before += forward + backward;
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
