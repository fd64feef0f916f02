// Reads a saved trace (Chrome's JSON format, as ui.perfetto.dev opens it) into spans on tracks:
// traces that `trainyard run --trace` or `trainyard simulate --trace` wrote, or a profiler. The
// file is read event by event and never held as text: ten million spans take about 300 MB. Times
// count from the earliest span.
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
  std::vector<std::uint32_t> spans;  // indices in SavedTrace::times, by start
};

struct SavedPoint {
  Picoseconds time{0};
  double value = 0;
};

struct SavedCounter {
  std::string process, name, unit;
  std::vector<SavedPoint> points;  // in order of time
};

struct SavedTrace {
  std::vector<std::string> names;   // of spans, each once
  std::vector<TaskTimes> times;     // of the spans
  std::vector<std::uint32_t> name;  // of each span: index in `names`
  std::vector<SavedTrack> tracks;   // in the order of their first events
  std::vector<SavedCounter> counters;
};

struct TraceReading {
  const std::atomic<bool>* interrupted = nullptr;  // once true: fails with "interrupted"
  std::function<void(double fraction)> progress;   // share of the file's bytes read; may be empty
};
Expected<SavedTrace> read_trace(const std::filesystem::path& file,
                                const TraceReading& reading = {});

}  // namespace trainyard
