// A saved trace (Chrome's JSON format, what ui.perfetto.dev opens) as spans on tracks: what
// `trainyard run --trace` and `trainyard simulate --trace` write, and what profilers do. It is read
// event by event and never held as text: ten million spans take some 300 MB. Times count from the
// earliest span.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/expected.h"
#include "simulator/timeline.h"

namespace trainyard {

inline constexpr std::size_t kLargestSavedTrace = std::size_t{4} << 30;  // bytes

struct SavedTrack {
  std::string process, name;
  std::vector<std::uint32_t> spans;  // places in SavedTrace::times, by start
};

struct SavedPoint {
  Picoseconds time{0};
  double value = 0;
};

struct SavedCounter {
  std::string process, name, unit;
  std::vector<SavedPoint> points;  // by time
};

struct SavedTrace {
  std::vector<std::string> names;   // of operations, each once
  std::vector<TaskTimes> times;     // of the spans
  std::vector<std::uint32_t> name;  // of each span, a place in names
  std::vector<SavedTrack> tracks;   // in the order of their first events
  std::vector<SavedCounter> counters;
};

struct TraceReading {
  const std::atomic<bool>* interrupted = nullptr;  // give up: an error that says "interrupted"
  std::function<void(double fraction)> progress;   // of the file's bytes; may be empty
};
Expected<SavedTrace> read_trace(const std::filesystem::path& file,
                                const TraceReading& reading = {});

}  // namespace trainyard
