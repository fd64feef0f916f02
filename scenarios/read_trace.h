// A saved trace (Chrome's JSON format, what ui.perfetto.dev opens) as spans on tracks: what
// `trainyard run --trace` and `trainyard simulate --trace` write, and what profilers do. It is read
// event by event. Times count from the earliest span.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/expected.h"
#include "simulator/timeline.h"

namespace trainyard {

inline constexpr std::size_t kLargestSavedTrace = std::size_t{512} << 20;  // bytes

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

Expected<SavedTrace> read_trace(const std::filesystem::path& file);

}  // namespace trainyard
