// What the descriptors in kinds/ share: the shapes that they accept, and the closed form of the
// span of one-forward-one-backward schedules with unlike stages. Closed forms do not allocate,
// because the estimate calls them.
#pragma once

#include <span>
#include <string_view>

#include "model/schedule/schedule.h"

namespace trainyard {

// Accepts v = 1 only; `name` is the schedule that the error names.
Expected<void> accepts_one_chunk(PipelineShape shape, std::string_view name);

// For closed forms that hold for every shape that the schedule accepts.
inline bool always_in_domain(PipelineShape /*shape*/, PassTimes /*times*/) { return true; }

// Schedule::fill = 1/v: a filling stage waits for one of the v chunks of each other stage.
inline double fill_of_one_chunk(PipelineShape shape, PassTimes /*times*/) {
  return 1.0 / shape.chunks;
}

// How long stage j waits while a micro-batch travels through the stages behind it and back, once
// when the pipeline fills and once when it drains: the time of the round trip minus the passes that
// stage j can run meanwhile.
struct RoundTrip {
  Seconds time;
  Seconds hidden_filling, hidden_draining;
  // Whether all forward passes come before the first backward pass: then there is only one wait.
  bool once = false;
  Seconds exposed() const;
};

// The span of 1F1B with v chunks a stage and unlike stages: the largest over j of the time that
// stage j needs if it never starves. That is one pass of the first chunk of each stage before j,
// j's own m micro-batches, and the exposed part of the round trip through the last chunks of the
// stages behind j, filling and draining. While micro-batches go round through the chunks before the
// last one, the slowest stage of each chunk sets the pace. For v = 1 this is handbook §8's form; it
// is up to 15 % too short where the first stages are several times as slow as the last ones, so
// that ways which turn back before the last stage count too. If the chunks of a stage differ, the
// passes are played (model/schedule/rounds.h).
Seconds one_f_one_b_span(PipelineShape shape, std::span<const PassTimes> times);

}  // namespace trainyard
