// Times for schedule tests: whole picoseconds, so that sums are exact.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "model/schedule/play.h"
#include "model/schedule/schedule.h"

namespace trainyard {

inline PassTimes picoseconds(int f, int b, int w) {
  return {.forward = Seconds(f * 1e-12),
          .input_gradient = Seconds(b * 1e-12),
          .weight_gradient = Seconds(w * 1e-12)};
}

inline std::int64_t in_picoseconds(Seconds time) { return std::llround(time.value() * 1e12); }

inline PassTimes seconds(double f, double b, double w) {
  return {.forward = Seconds(f), .input_gradient = Seconds(b), .weight_gradient = Seconds(w)};
}

inline std::vector<PassTimes> equal_stages(int stages, PassTimes times) {
  return std::vector(static_cast<std::size_t>(stages), times);
}

// Requires: the schedule's lists play to the end.
inline Played played(const Schedule& schedule, PipelineShape shape,
                     const std::vector<PassTimes>& stages) {
  shape.route = schedule.route;
  return play(schedule.passes(shape), shape, play_times(shape, stages)).value();
}

}  // namespace trainyard
