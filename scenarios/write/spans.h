// Writes spans as a trace for ui.perfetto.dev (Chrome's JSON trace format). Predicted and measured
// ranks are shown side by side: a process for each, a track for each of its streams, and counters
// over the same time.
#pragma once

#include <string>
#include <vector>

#include "model/units.h"

namespace trainyard {

struct Span {
  std::string process, track, name;
  Seconds begin, end;
};
struct CounterPoint {
  Seconds time;
  double value = 0;  // from this time on
};
struct TraceCounter {
  std::string process, name, unit;
  std::vector<CounterPoint> points;
};
std::string span_trace(const std::vector<Span>& spans,
                       const std::vector<TraceCounter>& counters = {});

}  // namespace trainyard
