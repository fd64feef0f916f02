#include "scenarios/write_spans.h"

#include <map>
#include <utility>

#include "scenarios/json_document.h"

namespace trainyard {
namespace {

constexpr double kMicroseconds = 1e6;  // what the format counts in

Json named(const char* what, int process, int track, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

}  // namespace

std::string span_trace(const std::vector<Span>& spans) {
  std::map<std::string, int> processes;
  std::map<std::pair<int, std::string>, int> tracks;
  Json events = Json::array();
  for (const Span& span : spans) {
    const auto [process, new_process] =
        processes.try_emplace(span.process, static_cast<int>(processes.size()));
    if (new_process) events.push_back(named("process_name", process->second, 0, span.process));
    const auto [track, new_track] =
        tracks.try_emplace({process->second, span.track}, static_cast<int>(tracks.size()));
    if (new_track) {
      events.push_back(named("thread_name", process->second, track->second, span.track));
    }
    events.push_back({{"ph", "X"},
                      {"name", span.name},
                      {"pid", process->second},
                      {"tid", track->second},
                      {"ts", span.begin.value() * kMicroseconds},
                      {"dur", (span.end - span.begin).value() * kMicroseconds}});
  }
  return text_of({{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}});
}

}  // namespace trainyard
