#include "scenarios/write/spans.h"

#include <map>
#include <utility>

#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

constexpr double kMicroseconds = 1e6;  // the format's unit

Json metadata_event(const char* what, int process, int track, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

}  // namespace

std::string span_trace(const std::vector<Span>& spans, const std::vector<TraceCounter>& counters) {
  std::map<std::string, int> processes;
  std::map<std::pair<int, std::string>, int> tracks;
  Json events = Json::array();
  const auto number_of = [&](const std::string& name) {
    const auto [process, is_new] = processes.try_emplace(name, static_cast<int>(processes.size()));
    if (is_new) events.push_back(metadata_event("process_name", process->second, 0, name));
    return process->second;
  };
  for (const Span& span : spans) {
    const int process = number_of(span.process);
    const auto [track, new_track] =
        tracks.try_emplace({process, span.track}, static_cast<int>(tracks.size()));
    if (new_track)
      events.push_back(metadata_event("thread_name", process, track->second, span.track));
    events.push_back({{"ph", "X"},
                      {"name", span.name},
                      {"pid", process},
                      {"tid", track->second},
                      {"ts", span.begin.value() * kMicroseconds},
                      {"dur", (span.end - span.begin).value() * kMicroseconds}});
  }
  for (const TraceCounter& counter : counters) {
    const int process = number_of(counter.process);
    for (const CounterPoint& point : counter.points) {
      events.push_back({{"ph", "C"},
                        {"name", counter.name},
                        {"pid", process},
                        {"ts", point.time.value() * kMicroseconds},
                        {"args", {{counter.unit, point.value}}}});
    }
  }
  return text_of({{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}});
}

}  // namespace trainyard
