// What the descriptors in kinds/ share: shapes they accept, and the closed form of the one-forward,
// one-backward schedules with unlike stages. The closed forms do not allocate: they are on the
// estimate's path.
#pragma once

#include <span>
#include <string_view>

#include "model/schedule/schedule.h"

namespace trainyard {

// For schedules with one chunk a stage.
Expected<void> accepts_one_chunk(PipelineShape shape, std::string_view name);

// Where the closed form holds for every shape that the schedule accepts.
inline bool always_in_domain(PipelineShape /*shape*/, PassTimes /*times*/) { return true; }

// A stage waits for the first chunk of those before it.
inline double fill_of_one_chunk(PipelineShape shape, PassTimes /*times*/) {
  return 1.0 / shape.chunks;
}

// What stage j waits for while a micro-batch is on its way through the stages behind it and back,
// once when the pipeline fills and once when it drains: the round trip less the passes that stage j
// has for that time.
struct RoundTrip {
  Seconds time;
  Seconds hidden_filling, hidden_draining;
  // All forward passes come before the first backward: filling and draining are one wait.
  bool once = false;
  Seconds exposed() const;
};

// 1F1B with v chunks a stage: the largest over j of the time when stage j never starves: the first
// chunks of the stages before it, its own m micro-batches, and the two round trips through the last
// chunks of those behind it. While micro-batches go round through the chunks before the last, the
// slowest stage of each is the pace. Handbook §8 with v = 1. Where the chunks of a stage are
// unlike, what the passes take (model/schedule/rounds.h).
Seconds one_f_one_b_span(PipelineShape shape, std::span<const PassTimes> times);

}  // namespace trainyard
