#include "scenarios/read_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "scenarios/json/output_file.h"
#include "scenarios/write/spans.h"

namespace trainyard {
namespace {

Expected<SavedTrace> read_back(const std::string& text) {
  const auto file = std::filesystem::path(testing::TempDir()) /
                    ("saved_trace." + std::to_string(::getpid()) + ".json");
  if (const auto written = write_file(file, text); !written) {
    return tl::unexpected(written.error());
  }
  auto trace = read_trace(file);
  std::filesystem::remove(file);
  return trace;
}

std::string problem_of(const std::string& text) {
  const auto trace = read_back(text);
  return trace ? "a trace" : trace.error().message;
}

Picoseconds microseconds(std::int64_t count) { return Picoseconds(count * 1'000'000); }

TEST(SavedTrace, HasTheSpansThatWereWritten) {
  const std::vector<Span> spans = {
      {"rank 0 predicted", "compute", "linear", Seconds(0), Seconds(3e-6)},
      {"rank 0 predicted", "tensor", "all-reduce", Seconds(3e-6), Seconds(5e-6)},
      {"rank 0 measured", "compute", "linear", Seconds(1e-6), Seconds(9e-6)},
      {"rank 0 measured", "compute", "norm", Seconds(0), Seconds(1e-6)}};
  const auto trace = read_back(span_trace(spans));
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->tracks.size(), 3u);
  EXPECT_EQ(trace->names, (std::vector<std::string>{"linear", "all-reduce", "norm"}));
  EXPECT_EQ(trace->tracks[2].process, "rank 0 measured");
  EXPECT_EQ(trace->tracks[2].name, "compute");
  EXPECT_EQ(trace->tracks[2].spans, (std::vector<std::uint32_t>{3, 2}));  // by start
  EXPECT_EQ(trace->times[2], (TaskTimes{microseconds(1), microseconds(9)}));
  EXPECT_EQ(trace->names[trace->name[2]], "linear");
}

// Clocks of profilers start long before the trace.
TEST(SavedTrace, CountsFromTheEarliestSpan) {
  const auto trace = read_back(R"({"traceEvents": [
    {"ph": "X", "name": "b", "pid": 1, "tid": "s", "ts": 1700000000000002, "dur": 4},
    {"ph": "X", "name": "a", "pid": 1, "tid": "s", "ts": 1700000000000000, "dur": 1},
    {"ph": "C", "name": "memory", "pid": 1, "ts": 1700000000000001, "args": {"GiB": 2.5}}]})");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->times[0], (TaskTimes{microseconds(2), microseconds(6)}));
  EXPECT_EQ(trace->times[1], (TaskTimes{microseconds(0), microseconds(1)}));
  ASSERT_EQ(trace->counters.size(), 1u);
  EXPECT_EQ(trace->counters[0].unit, "GiB");
  ASSERT_EQ(trace->counters[0].points.size(), 1u);
  EXPECT_EQ(trace->counters[0].points[0].time, microseconds(1));
  EXPECT_EQ(trace->counters[0].points[0].value, 2.5);
}

TEST(SavedTrace, PassesOverEventsThatAreNoSpans) {
  const auto trace = read_back(R"({"traceEvents": [
    {"ph": "X", "name": "no time"}, {"ph": "X", "ts": "0", "dur": 1}, {"ph": 7},
    {"ph": "X", "name": "backwards", "ts": 5, "dur": -1}, {"ph": "C", "args": {}},
    {"ph": "M", "name": "process_name", "pid": 1, "args": 3},
    {"ph": "X", "name": "a", "ts": 5, "dur": 1, "args": {"deep": {"er": [1]}}}],
    "other": {"ph": "X"}})");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->times.size(), 1u);
}

// A text of many blocks. The caller is told after each block and can stop the reading.
TEST(SavedTrace, IsReadBlockByBlock) {
  std::vector<Span> spans;
  for (int i = 0; i < 40000; ++i) {
    spans.push_back({"rank 0", "compute", "linear", Seconds(1e-6 * i), Seconds(1e-6 * (i + 1))});
  }
  const auto file = std::filesystem::path(testing::TempDir()) /
                    ("blocks." + std::to_string(::getpid()) + ".json");
  std::ofstream(file) << span_trace(spans);
  std::vector<double> told;
  const auto whole = read_trace(file, {.progress = [&](double part) { told.push_back(part); }});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->times.size(), spans.size());
  EXPECT_EQ(whole->times.back(), (TaskTimes{microseconds(39999), microseconds(40000)}));
  EXPECT_GT(told.size(), 2u);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), 1);
  std::atomic<bool> stop = false;
  const auto given_up = read_trace(file, {&stop, [&](double) { stop = true; }});
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().message, "interrupted");
  std::filesystem::remove(file);
}

// Lists of lists and other members are skipped, whatever their size.
TEST(SavedTrace, KeepsNothingButEvents) {
  const auto trace = read_back(R"({"first": [{"ph": "X", "ts": 1, "dur": 1}, [1, [2]]],
    "traceEvents": [[{"ph": "X", "ts": 2, "dur": 1}], 7,
      {"ph": "X", "name": "a", "ts": 3, "dur": 4, "args": {"list": [1, {"b": 2}]}}],
    "displayTimeUnit": "ms"})");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->times.size(), 1u);
  EXPECT_EQ(trace->times[0], (TaskTimes{microseconds(0), microseconds(4)}));
}

TEST(SavedTrace, SaysInALineWhyAFileIsNone) {
  for (const char* text : {"", "{", "{\"traceEvents\": [}", "{\"traceEvents\": [{\"ph\": \"X\""}) {
    EXPECT_THAT(problem_of(text), testing::HasSubstr("broken JSON, or its end cut off")) << text;
  }
  for (const char* text : {"[]", "7", "{\"events\": []}"}) {
    EXPECT_THAT(problem_of(text), testing::HasSubstr("no \"traceEvents\"")) << text;
  }
  EXPECT_THAT(problem_of(R"({"traceEvents": []})"), testing::HasSubstr("no span of time"));
  EXPECT_THAT(problem_of(R"({"traceEvents": [{"ph": "X", "ts": 0, "dur": 1},
                             {"ph": "X", "ts": 1e14, "dur": 1}]})"),
              testing::HasSubstr("apart"));
  EXPECT_FALSE(read_trace("/nowhere/trace.json"));
  std::string deep = R"({"traceEvents": [)";
  for (int i = 0; i < 100000; ++i) deep += "[";
  EXPECT_THAT(problem_of(deep), testing::HasSubstr("nested deeper than"));
}

}  // namespace
}  // namespace trainyard
