// What a run measured, as its user sees it: the trace and the profile of real runs, compared with
// each other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "scenarios/read_trace.h"
#include "scenarios/write/profile.h"
#include "tests/executor/tiny_scenario.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// The trace has as many measured operations as predicted ones, one process after the other.
TEST(RunProfile, WritesATraceOfPredictedBesideMeasured) {
  const fs::path trace = scratch_folder() / "trace.json";
  const auto ran =
      run_trainyard(fmt::format("run {} --trace {}", tiny_scenario("", 2), trace.string()));
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::string text = read_text(trace);
  for (const char* process : {"rank 0 predicted", "rank 0 measured", "rank 1 measured"}) {
    EXPECT_NE(text.find(process), std::string::npos) << process;
  }
  EXPECT_NE(text.find("\"traceEvents\""), std::string::npos);
  EXPECT_NE(text.find("optimizer step"), std::string::npos);
}

// Whether the spans of one track, ordered by start, nest, so that none ends inside the next. Times
// were doubles of microseconds in between.
bool nests(const SavedTrace& trace, const SavedTrack& track) {
  constexpr Picoseconds kRounding{1000};
  std::vector<Picoseconds> open;  // ends
  for (const std::uint32_t span : track.spans) {
    const TaskTimes& times = trace.times[span];
    while (!open.empty() && open.back() <= times.start + kRounding) open.pop_back();
    if (!open.empty() && times.end > open.back() + kRounding) return false;
    open.push_back(times.end);
  }
  return true;
}

// Viewers drop one of two spans of a track that overlap without nesting. Between chunks, messages
// of both directions overlap, and the gradients of norms are reduced beside gathers.
TEST(RunProfile, TracesNoSpansOfOneTrackThatOverlap) {
  for (const auto& [plan, ranks] :
       {std::pair{R"("pipeline_parallel": 2, "virtual_stages": 2)", 2},
        {R"("tensor_parallel": 2, "pipeline_parallel": 2, "data_parallel": 2, "virtual_stages": 2,
            "zero_stage": 1)",
         8}}) {
    const fs::path file = scratch_folder() / "trace.json";
    const Ran ran = run_trainyard(
        fmt::format("run {} --steps 1 --trace {}", tiny_scenario(plan, ranks), file.string()));
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto trace = read_trace(file);
    ASSERT_TRUE(trace);
    for (const SavedTrack& track : trace->tracks) {
      EXPECT_TRUE(nests(*trace, track)) << track.process << ", " << track.name;
    }
  }
}

double most_of(const SavedTrace& trace, const std::string& process, const std::string& name) {
  double most = -1;
  for (const SavedCounter& counter : trace.counters) {
    if (counter.process != process || counter.name != name) continue;
    for (const SavedPoint& point : counter.points) most = std::max(most, point.value);
  }
  return most;
}

// Splits a line such as "a b  1.5  –" into cells, which two blanks separate.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find("  ", at), line.size());
    if (end > at) cells.push_back(line.substr(at, end - at));
    at = std::min(line.find_first_not_of(' ', end), line.size());
  }
  return cells;
}

double number_in(const std::string& cell) {
  double number = 0;
  const char* begin = cell.data() + (cell.starts_with('+') ? 1 : 0);
  std::from_chars(begin, cell.data() + cell.size(), number);  // 0 of what was not timed
  return number;
}

// The printed sums are those of the profile that was written, half of each of two stages.
TEST(RunProfile, AddsUpTheClassesOfOperationsWhereItIsRead) {
  constexpr double kPrinted = 0.0006;  // ms; half of the last digit
  const fs::path file = scratch_folder() / "p.json";
  const Ran ran = run_trainyard(fmt::format(
      "run {} -o {}", tiny_scenario(R"("tensor_parallel": 2, "pipeline_parallel": 2)", 4),
      file.string()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto profile = read_profile(file);
  ASSERT_TRUE(profile);
  std::map<std::string, std::pair<double, double>> sums;  // ms, predicted and measured
  for (const ProfiledOperation& of : profile->operations) {
    for (const std::string& name : {of.of_class, std::string("all operations")}) {
      sums[name].first += 500 * of.predicted.value();
      sums[name].second += 500 * of.measured.value();
    }
  }
  sums["the step"] = {1e3 * profile->predicted_step_time.value(),
                      1e3 * mean_step_time(*profile).value()};
  std::vector<double> differences;
  std::size_t found = 0;
  for (const std::string& line : lines_of(ran.out)) {
    const std::vector<std::string> cells = cells_of(line);
    const auto sum = cells.empty() ? sums.end() : sums.find(cells.front());
    if (sum == sums.end()) continue;
    ++found;
    const std::size_t first = cells.front() == "the step" ? 1 : 2;  // behind the tasks
    ASSERT_GT(cells.size(), first + 2) << line;
    const auto [predicted, measured] = sum->second;
    EXPECT_NEAR(number_in(cells[first]), predicted, kPrinted) << line;
    EXPECT_NEAR(number_in(cells[first + 1]), measured, kPrinted) << line;
    EXPECT_NEAR(number_in(cells[first + 2]), measured - predicted, kPrinted) << line;
    if (found <= sums.size() - 2) differences.push_back(std::abs(measured - predicted));
  }
  EXPECT_EQ(found, sums.size()) << ran.out;
  for (const char* name : {"gemm", "attention forward", "all-gather", "optimizer"}) {
    EXPECT_EQ(sums.count(name), 1U) << name;
  }
  EXPECT_TRUE(std::ranges::is_sorted(differences, std::greater<>()));
}

// A rank that runs alone has measured its own stage only, so for others there is nothing to
// compare.
TEST(RunProfile, HasNoOperationsOfStagesThatWereNotRun) {
  const fs::path file = scratch_folder() / "p.json";
  const Ran ran =
      run_trainyard(fmt::format("run {} --alone --rank 1 --steps 1 -o {}",
                                tiny_scenario(R"("pipeline_parallel": 2)", 2), file.string()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto profile = read_profile(file);
  ASSERT_TRUE(profile);
  EXPECT_FALSE(profile->operations.empty());
  for (const ProfiledOperation& of : profile->operations) EXPECT_EQ(of.stage, 1) << of.operation;
}

// Its peers never sent anything, so loss, gradient norm and MFU mean nothing and are not printed.
TEST(RunProfile, OfARankAloneHasTimesAndNoNumbers) {
  const fs::path file = scratch_folder() / "p.json";
  const Ran ran = run_trainyard(fmt::format(
      "run {} --alone --rank 3 --steps 2 --watch -o {}",
      tiny_scenario(R"("tensor_parallel": 2, "pipeline_parallel": 2)", 4), file.string()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("tiny, rank 3 alone"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find(" predicted ("), std::string::npos) << ran.out;
  const std::string text = read_text(file);
  // The names of operations follow below, and one of them contains "loss".
  const std::string steps = ran.out.substr(0, ran.out.find("by classes of operations"));
  EXPECT_LT(steps.size(), ran.out.size());
  for (const char* meaningless : {"loss", "gradient norm", "MFU", "nan"}) {
    EXPECT_EQ(steps.find(meaningless), std::string::npos) << meaningless;
  }
  EXPECT_EQ(ran.out.find("MFU"), std::string::npos);
  for (const char* meaningless : {"loss", "gradient_norm", "mfu", "nan"}) {
    EXPECT_EQ(text.find(fmt::format("\"{}\"", meaningless)), std::string::npos) << meaningless;
  }
  EXPECT_NE(ran.err.find(R"("steps_done":3,)"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find(R"("loss":null)"), std::string::npos) << ran.err;
  const auto profile = read_profile(file);
  ASSERT_TRUE(profile);
  EXPECT_TRUE(profile->alone);
  ASSERT_EQ(profile->steps.size(), 3U);
  EXPECT_GT(profile->steps.back().time, Seconds(0));
  EXPECT_FALSE(profile->steps.back().loss || profile->steps.back().gradient_norm);
}

// The prediction also is for the rank alone, without the bubble of the pipeline.
TEST(RunProfile, PredictsOfARankAloneWhatDoesNotWaitForOthers) {
  const auto predicted = [](const char* how) {
    const fs::path file = scratch_folder() / "p.json";
    const Ran ran = run_trainyard(fmt::format("run {} {} --steps 1 -o {}",
                                              tiny_scenario(R"("pipeline_parallel": 2)", 2), how,
                                              file.string()));
    EXPECT_EQ(ran.status, 0) << ran.err;
    const auto profile = read_profile(file);
    return profile ? profile->predicted_step_time : Seconds(0);
  };
  const Seconds together = predicted("");
  for (const char* how : {"--alone --rank 0", "--alone --rank 1"}) {
    const Seconds alone = predicted(how);
    EXPECT_GT(alone, Seconds(0)) << how;
    EXPECT_LT(alone, together) << how;
  }
}

// The scenario together with these options repeats the run.
TEST(RunProfile, SaysWhatTheRunWasToldBesideTheScenario) {
  const fs::path tokens = write_scratch("tokens.bin", std::string("\5\0\7\0", 4));
  const fs::path profile = scratch_folder() / "p.json";
  const Ran ran = run_trainyard(fmt::format(
      "run {} --steps 1 --ranks 2 --scale-down --seed 3 --learning-rate 0.25 --same-batch "
      "--tokens {} -o {}",
      tiny_scenario(R"("pipeline_parallel": 2, "data_parallel": 2)", 4), tokens.string(),
      profile.string()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto told = read_profile(profile);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->name, "tiny, scaled down to 2 ranks");
  EXPECT_EQ(told->seed, 3);
  EXPECT_EQ(told->learning_rate, 0.25);
  EXPECT_TRUE(told->same_batch);
  EXPECT_EQ(told->tokens, tokens.string());
  EXPECT_EQ(told->scaled_down, "data_parallel 2 → 1, global_batch 8 → 4");
  ASSERT_TRUE(told->plan);
  EXPECT_EQ(told->plan->pipeline_parallel, 2);
  EXPECT_EQ(told->plan->data_parallel, 1);
  EXPECT_EQ(told->plan->schedule, "1f1b");
}

// Under zb-v the update does not wait for the norm that clips the gradient; under 1F1B it does.
TEST(RunProfile, SaysWhereThePlanClipsNoGradient) {
  const char* without_barrier = R"("pipeline_parallel": 2, "schedule": "zb-v", "virtual_stages": 2,
                                   "optimizer_barrier": false)";
  for (const auto& [plan, stack, clips] : {std::tuple{without_barrier, "torchtitan", false},
                                           {R"("pipeline_parallel": 2)", "megatron-core", true}}) {
    std::string text = read_text(tiny_scenario(plan, 2));
    const std::string usual = "megatron-core";
    text.replace(text.find(usual), usual.size(), stack);
    const fs::path scenario = write_scratch("noted.json", text);
    const fs::path profile = scratch_folder() / "p.json";
    const Ran ran =
        run_trainyard(fmt::format("run {} --steps 1 -o {}", scenario.string(), profile.string()));
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto told = read_profile(profile);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->note.find("the gradient is not clipped") != std::string::npos, !clips) << plan;
    EXPECT_EQ(ran.out.find("Note: the gradient is not clipped") != std::string::npos, !clips)
        << ran.out;
  }
}

// The counter's maximum is what the backend itself counted, and ranks that communicate have a link
// load.
TEST(RunProfile, TracesTheMemoryThatEachRankHolds) {
  const fs::path trace = scratch_folder() / "trace.json", profile = scratch_folder() / "p.json";
  const Ran ran = run_trainyard(fmt::format("run {} --steps 2 --trace {} -o {}",
                                            tiny_scenario(R"("pipeline_parallel": 2)", 2),
                                            trace.string(), profile.string()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto saved = read_trace(trace);
  const auto measured = read_profile(profile);
  ASSERT_TRUE(saved && measured);
  ASSERT_EQ(measured->ranks.size(), 2u);
  for (const ProfiledRank& rank : measured->ranks) {
    const std::string of = fmt::format("rank {} measured", rank.rank);
    const double gib = static_cast<double>(1 << 30);
    EXPECT_NEAR(most_of(*saved, of, "memory") * gib / rank.peak_memory.value(), 1, 1e-6) << of;
    EXPECT_GT(most_of(*saved, of, "link load"), 0) << of;
    EXPECT_GT(most_of(*saved, fmt::format("rank {} predicted", rank.rank), "memory"), 0);
  }
}

// The trace has the operations of the last step one by one. What they leave of the step is the
// share in between.
TEST(RunProfile, SaysWhatLiesBetweenItsOperations) {
  const fs::path trace = scratch_folder() / "trace.json", profile = scratch_folder() / "p.json";
  const Ran ran = run_trainyard(fmt::format(
      "run {} --steps 2 --trace {} -o {}", tiny_scenario("", 1), trace.string(), profile.string()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("Between operations: at most "), std::string::npos) << ran.out;
  const auto saved = read_trace(trace);
  const auto measured = read_profile(profile);
  ASSERT_TRUE(saved && measured);
  double busy = 0;  // one rank of one stream: nothing overlaps
  for (const SavedTrack& track : saved->tracks) {
    if (track.process != "rank 0 measured") continue;
    for (const std::uint32_t span : track.spans) {
      busy += to_seconds(saved->times[span].end - saved->times[span].start).value();
    }
  }
  ASSERT_EQ(measured->ranks.size(), 1u);
  EXPECT_GT(busy, 0);
  const ProfiledRank& rank = measured->ranks[0];
  EXPECT_NEAR(rank.between, 1 - busy / measured->steps.back().time.value(), 1e-3);
  ASSERT_EQ(rank.streams.size(), 1u);
  EXPECT_EQ(rank.streams[0].stream, "compute");
  EXPECT_EQ(rank.streams[0].between, rank.between);
  EXPECT_EQ(rank.streams[0].communicating, 0);
  EXPECT_EQ(rank.streams[0].longest_gap, rank.longest_gap);
  EXPECT_FALSE(rank.after.empty());
  std::string text = ran.out;  // without the ends of its lines
  std::ranges::replace(text, '\n', ' ');
  EXPECT_NE(text.find(fmt::format("after {} and before {}.", rank.after, rank.before)),
            std::string::npos)
      << ran.out;
}

// The gaps of each track, computed from the trace that is read back, must be those of the profile.
TEST(RunProfile, SaysWhatLiesBetweenTheOperationsOfEachStream) {
  const fs::path trace = scratch_folder() / "trace.json", profile = scratch_folder() / "p.json";
  const Ran ran =
      run_trainyard(fmt::format("run {} --steps 2 --trace {} -o {}",
                                tiny_scenario(R"("tensor_parallel": 2, "pipeline_parallel": 2)", 4),
                                trace.string(), profile.string()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("communicating: of it,"), std::string::npos) << ran.out;
  const auto saved = read_trace(trace);
  const auto measured = read_profile(profile);
  ASSERT_TRUE(saved && measured);
  ASSERT_EQ(measured->ranks.size(), 4u);
  // Tasks by rank and stream. A stream that the simulation plays side by side has several tracks,
  // named after it.
  std::map<std::pair<const ProfiledRank*, std::string>, std::vector<TaskTimes>> streams;
  for (const SavedTrack& track : saved->tracks) {
    const auto rank = std::ranges::find_if(measured->ranks, [&](const ProfiledRank& of) {
      return track.process == fmt::format("rank {} measured", of.rank);
    });
    if (rank == measured->ranks.end()) continue;
    auto& times = streams[{&*rank, track.name.substr(0, track.name.find(','))}];
    for (const std::uint32_t span : track.spans) times.push_back(saved->times[span]);
  }
  for (auto& [of, times] : streams) {
    const auto& [rank, name] = of;
    const auto stream = std::ranges::find(rank->streams, name, &ProfiledStream::stream);
    ASSERT_NE(stream, rank->streams.end()) << name;
    std::ranges::sort(times, {}, &TaskTimes::start);
    // One thread runs one operation after another, so nothing overlaps.
    double all = 0, longest = 0, until = -1;
    for (const TaskTimes& span : times) {
      const double begin = to_seconds(span.start).value();
      const double gap = until < 0 ? 0 : begin - until;
      all += gap;
      longest = std::max(longest, gap);
      until = to_seconds(span.end).value();
    }
    const double step = measured->steps.back().time.value();
    EXPECT_NEAR(stream->longest_gap.value(), longest, 1e-8) << rank->rank << name;
    // The step of the slowest rank is at least as long as this rank's.
    EXPECT_GE(stream->between, all / step - 1e-3) << rank->rank << name;
    EXPECT_LE(stream->communicating, stream->between);
    EXPECT_EQ(stream->after.empty(), longest == 0);
  }
  std::size_t profiled = 0;
  for (const ProfiledRank& rank : measured->ranks) {
    profiled += rank.streams.size();
    const auto has = [&](std::string_view name) {
      return std::ranges::count(rank.streams, name, &ProfiledStream::stream) == 1;
    };
    EXPECT_TRUE(has("compute") && has("tensor") && has("pipeline"));
  }
  EXPECT_EQ(streams.size(), profiled);
}

}  // namespace
}  // namespace trainyard
