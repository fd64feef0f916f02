#include "scenarios/read_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <istream>
#include <limits>
#include <map>
#include <streambuf>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "model/interrupted.h"
#include "scenarios/json/file.h"
#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

constexpr double kLatestSpan = 1e17;    // us; no clock gets there
constexpr double kLongestTrace = 1e12;  // us that a trace covers: 11 days
constexpr double kPicoseconds = 1e6;    // in a microsecond

constexpr std::size_t kBlock = std::size_t{1} << 20;  // bytes read at a time

// A file, block by block, which ends early if reading is interrupted.
class FileBlocks : public std::streambuf {
 public:
  FileBlocks(const std::filesystem::path& file, const TraceReading& reading)
      : in_(file, std::ios::binary), reading_(reading), block_(kBlock, '\0') {
    std::error_code error;
    size_ = static_cast<double>(std::filesystem::file_size(file, error));
  }
  bool is_open() const { return in_.is_open(); }
  bool is_unreadable() const { return in_.bad(); }
  bool is_interrupted() const { return is_set(reading_.interrupted); }
  void end() { ended_ = true; }

 protected:
  int_type underflow() override {
    if (ended_ || is_interrupted()) return traits_type::eof();
    in_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
    const std::streamsize count = in_.gcount();
    if (count == 0) return traits_type::eof();
    read_ += static_cast<double>(count);
    if (reading_.progress && size_ > 0) reading_.progress(std::min(1.0, read_ / size_));
    setg(block_.data(), block_.data(), block_.data() + count);
    return traits_type::to_int_type(*gptr());
  }

 private:
  std::ifstream in_;
  const TraceReading& reading_;
  std::string block_;
  double size_ = 0, read_ = 0;
  bool ended_ = false;
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

  bool is_empty() const { return trace_.times.empty(); }
  double length() const { return last_ - first_; }  // us

  // Requires: not empty, not longer than allowed.
  SavedTrace finish() {
    const Picoseconds first = since_origin(first_);
    for (TaskTimes& times : trace_.times) times = {times.start - first, times.end - first};
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

  // Counts from the first span that was read, while earlier ones may still come.
  Picoseconds since_origin(double time) const {
    const double after = std::clamp(time - origin_, -kLongestTrace, kLongestTrace);
    return Picoseconds(std::llround(after * kPicoseconds));
  }
  Picoseconds since_first(double time) const {
    const double after = std::clamp(time - first_, 0.0, kLongestTrace);
    return Picoseconds(std::llround(after * kPicoseconds));
  }

  void take_span(const Json& event) {
    const auto begin = event.find("ts"), duration = event.find("dur");
    if (begin == event.end() || duration == event.end()) return;
    if (!begin->is_number() || !duration->is_number()) return;
    const double from = begin->get<double>();
    const double to = from + duration->get<double>();
    if (!(std::abs(from) < kLatestSpan) || !(to >= from)) return;
    const auto place = static_cast<std::uint32_t>(trace_.times.size());
    if (place == std::numeric_limits<std::uint32_t>::max()) return;
    if (is_empty()) origin_ = from;
    trace_.times.push_back({since_origin(from), since_origin(to)});
    first_ = std::min(first_, from);
    last_ = std::max(last_, to);
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
    for (const Sample& sample : std::exchange(samples_[at], {})) {
      counter.points.push_back({since_first(sample.time), sample.value});
    }
  }

  SavedTrace trace_;
  double origin_ = 0;
  double first_ = kLatestSpan, last_ = -kLatestSpan;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::map<Ids, std::size_t> tracks_, counters_;
  std::vector<std::vector<Sample>> samples_;  // of each counter
  std::map<std::string, std::string> processes_;
  std::map<Ids, std::string> threads_;
};

// Keeps of the text only the events, each until it is taken, with their plain members and "args".
// So the text needs no more memory than one event does.
class TraceEvents {
 public:
  TraceEvents(TraceReader& reader, FileBlocks& file) : reader_(reader), file_(file) {}

  bool keeps(int depth, Json::parse_event_t what, Json& parsed) {
    is_too_deep_ |= depth > static_cast<int>(kDeepestNesting);
    if (is_too_deep_) file_.end();
    switch (what) {
      case Json::parse_event_t::object_start:
        if (depth == kEvent) keys_ = 0;
        return depth <= kEvent + 1;
      case Json::parse_event_t::array_start:
        return depth == kEvent - 1;
      case Json::parse_event_t::key:
        return depth > 1 ? ++keys_ <= kMostKeys : parsed == "traceEvents";
      case Json::parse_event_t::value:
        return depth != kEvent;
      case Json::parse_event_t::object_end:
        if (depth != kEvent) return true;
        reader_.take(parsed);
        return false;
      case Json::parse_event_t::array_end:
        break;
    }
    return true;
  }

  bool is_too_deep() const { return is_too_deep_; }

 private:
  static constexpr int kEvent = 2;  // depth of an event: inside the list inside the document
  static constexpr int kMostKeys = 1000;

  TraceReader& reader_;
  FileBlocks& file_;
  int keys_ = 0;
  bool is_too_deep_ = false;
};

constexpr std::string_view kTraceAllowed = "allowed: a trace as JSON, unpacked";

// Why the text is not a trace; empty: it is one.
std::string text_problem(const FileBlocks& blocks, const TraceEvents& events, const Json& rest) {
  if (blocks.is_unreadable()) return "cannot be read to its end";
  if (events.is_too_deep()) {
    return fmt::format("found JSON nested deeper than {} levels; {}", kDeepestNesting,
                       kTraceAllowed);
  }
  if (rest.is_discarded()) {
    return fmt::format("found broken JSON, or its end cut off; {}", kTraceAllowed);
  }
  const bool has_events = rest.is_object() && rest.contains("traceEvents");
  return has_events ? "" : fmt::format("found no \"traceEvents\"; {}", kTraceAllowed);
}

}  // namespace

Expected<SavedTrace> read_trace(const std::filesystem::path& file, const TraceReading& reading) {
  if (const auto readable = check_readable(file, kLargestSavedTrace); !readable) {
    return failure(file.string(), readable.error().message);
  }
  FileBlocks blocks(file, reading);
  if (!blocks.is_open()) return failure(file.string(), "cannot be read");
  TraceReader reader;
  TraceEvents events(reader, blocks);
  std::istream text(&blocks);
  const auto each = [&](int depth, Json::parse_event_t what, Json& parsed) {
    return events.keeps(depth, what, parsed);
  };
  const Json rest = Json::parse(text, each, false);
  if (blocks.is_interrupted()) return failure("", "interrupted");
  if (const std::string problem = text_problem(blocks, events, rest); !problem.empty()) {
    return failure(file.string(), problem);
  }
  if (reader.is_empty()) return failure(file.string(), "found no span of time in the trace");
  if (reader.length() > kLongestTrace) {
    return failure(file.string(), fmt::format("found spans {:.3g} s apart; allowed are {:.3g}",
                                              reader.length() * 1e-6, kLongestTrace * 1e-6));
  }
  return reader.finish();
}

}  // namespace trainyard
