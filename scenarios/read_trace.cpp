#include "scenarios/read_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "scenarios/file.h"
#include "scenarios/json_document.h"

namespace trainyard {
namespace {

constexpr double kLatestSpan = 1e17;  // us: beyond any clock
constexpr double kLongest = 1e12;     // us that a trace covers: 11 days
constexpr double kPicoseconds = 1e6;  // a microsecond

struct EventTimes {
  double begin = 0, end = 0;  // us
};

std::string member_text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// "pid" and "tid" are numbers or names.
std::string member_id(const Json& event, const char* key) {
  const auto found = event.find(key);
  return found == event.end() ? std::string() : found->dump();
}

class TraceReader {
 public:
  void take(const Json& event) {
    const std::string phase = member_text(event, "ph");
    if (phase == "X") take_span(event);
    if (phase == "C") take_counter(event);
    if (phase == "M") take_name(event);
  }

  bool is_empty() const { return spans_.empty(); }
  double length() const { return last_ - first_; }  // us

  SavedTrace finish() {
    trace_.times.reserve(spans_.size());
    for (const EventTimes& span : spans_) {
      trace_.times.push_back({since_first(span.begin), since_first(span.end)});
    }
    for (auto& [ids, at] : tracks_) name_track(ids, trace_.tracks[at]);
    for (SavedTrack& track : trace_.tracks) {
      std::ranges::stable_sort(track.spans, {},
                               [this](std::uint32_t span) { return trace_.times[span].start; });
    }
    for (auto& [ids, at] : counters_) finish_counter(ids.first, at);
    return std::move(trace_);
  }

 private:
  using Ids = std::pair<std::string, std::string>;  // of the process, and the thread or name
  struct Sample {
    double time = 0, value = 0;
  };

  Picoseconds since_first(double time) const {
    const double after = std::clamp(time - first_, 0.0, kLongest);
    return Picoseconds(std::llround(after * kPicoseconds));
  }

  void take_span(const Json& event) {
    const auto begin = event.find("ts"), duration = event.find("dur");
    if (begin == event.end() || duration == event.end()) return;
    if (!begin->is_number() || !duration->is_number()) return;
    EventTimes span{begin->get<double>(), begin->get<double>() + duration->get<double>()};
    if (!(std::abs(span.begin) < kLatestSpan) || !(span.end >= span.begin)) return;
    const auto place = static_cast<std::uint32_t>(spans_.size());
    if (place == std::numeric_limits<std::uint32_t>::max()) return;
    spans_.push_back(span);
    first_ = std::min(first_, span.begin);
    last_ = std::max(last_, span.end);
    const auto [name, new_name] = names_.try_emplace(
        member_text(event, "name"), static_cast<std::uint32_t>(trace_.names.size()));
    if (new_name) trace_.names.push_back(name->first);
    trace_.name.push_back(name->second);
    const auto [track, new_track] = tracks_.try_emplace(
        {member_id(event, "pid"), member_id(event, "tid")}, trace_.tracks.size());
    if (new_track) trace_.tracks.emplace_back();
    trace_.tracks[track->second].spans.push_back(place);
  }

  void take_counter(const Json& event) {
    const auto time = event.find("ts"), values = event.find("args");
    if (time == event.end() || !time->is_number() || values == event.end()) return;
    if (!values->is_object() || values->empty() || !values->front().is_number()) return;
    const Ids ids{member_id(event, "pid"), member_text(event, "name")};
    const auto [counter, is_new] = counters_.try_emplace(ids, trace_.counters.size());
    if (is_new) {
      trace_.counters.push_back({{}, ids.second, values->begin().key(), {}});
      samples_.emplace_back();
    }
    samples_[counter->second].push_back({time->get<double>(), values->front().get<double>()});
  }

  void take_name(const Json& event) {
    const auto args = event.find("args");
    if (args == event.end() || !args->is_object()) return;
    const std::string what = member_text(event, "name");
    if (what == "process_name") processes_[member_id(event, "pid")] = member_text(*args, "name");
    if (what == "thread_name") {
      threads_[{member_id(event, "pid"), member_id(event, "tid")}] = member_text(*args, "name");
    }
  }

  std::string process_of(const std::string& id) const {
    const auto found = processes_.find(id);
    return found == processes_.end() ? id : found->second;
  }

  void name_track(const Ids& ids, SavedTrack& track) const {
    track.process = process_of(ids.first);
    const auto thread = threads_.find(ids);
    track.name = thread == threads_.end() ? ids.second : thread->second;
  }

  void finish_counter(const std::string& process, std::size_t at) {
    SavedCounter& counter = trace_.counters[at];
    counter.process = process_of(process);
    std::ranges::stable_sort(samples_[at], {}, &Sample::time);
    counter.points.reserve(samples_[at].size());
    for (const Sample& sample : samples_[at]) {
      counter.points.push_back({since_first(sample.time), sample.value});
    }
  }

  SavedTrace trace_;
  std::vector<EventTimes> spans_;
  double first_ = kLatestSpan, last_ = -kLatestSpan;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::map<Ids, std::size_t> tracks_, counters_;
  std::vector<std::vector<Sample>> samples_;  // of each counter
  std::map<std::string, std::string> processes_;
  std::map<Ids, std::string> threads_;
};

}  // namespace

Expected<SavedTrace> read_trace(const std::filesystem::path& file) {
  auto text = read_file(file, kLargestSavedTrace);
  if (!text) return tl::unexpected(Error{file.string(), text.error().message});
  TraceReader reader;
  bool is_too_deep = false;
  const auto each = [&](int depth, Json::parse_event_t what, Json& parsed) {
    is_too_deep |= depth > static_cast<int>(kDeepestNesting);
    if (what != Json::parse_event_t::object_end || depth != 2) return !is_too_deep;
    reader.take(parsed);
    return false;  // it need not be kept
  };
  const Json rest = Json::parse(*text, each, false);
  if (rest.is_discarded() || is_too_deep || !rest.is_object() || !rest.contains("traceEvents")) {
    return failure(file.string(), "found no \"traceEvents\"; allowed: a trace as JSON, unpacked");
  }
  if (reader.is_empty()) return failure(file.string(), "found no span of time in the trace");
  if (reader.length() > kLongest) {
    return failure(file.string(), fmt::format("found spans {:.3g} s apart; allowed are {:.3g}",
                                              reader.length() * 1e-6, kLongest * 1e-6));
  }
  return reader.finish();
}

}  // namespace trainyard
