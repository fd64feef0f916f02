// Spans of time as a trace for ui.perfetto.dev (Chrome's JSON trace format), side by side: a
// process of its own for each rank as predicted and as measured, a track for each of its streams,
// and counters of what changes over the same time.
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
  double value = 0;  // from then on
};
struct TraceCounter {
  std::string process, name, unit;
  std::vector<CounterPoint> points;
};
std::string span_trace(const std::vector<Span>& spans,
                       const std::vector<TraceCounter>& counters = {});

}  // namespace trainyard
