#include "scenarios/write/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "model/units.h"
#include "scenarios/json/output_file.h"
#include "simulator/reading/critical_path.h"
#include "simulator/step/link_load.h"

namespace trainyard {
namespace {

constexpr std::size_t kBuffered = std::size_t{1} << 20;  // bytes that are buffered before writing

// A time in microseconds, exact to the picosecond.
std::string microseconds(Picoseconds time) {
  constexpr std::int64_t kPerMicrosecond = 1000000;
  return fmt::format("{}.{:06}", time.count() / kPerMicrosecond, time.count() % kPerMicrosecond);
}

class TraceWriter {
 public:
  TraceWriter(OutputFile& out, const StepSimulation& simulation)
      : out_(out), step_(simulation.step), timeline_(simulation.timeline) {}

  // Writes the trace. False: interrupted.
  bool write(const std::function<bool()>& interrupted) {
    text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    for (int rank = 0; rank < static_cast<int>(step_.graph.ranks.size()); ++rank) {
      if (interrupted()) return false;
      add_names(rank);
      add_tasks(rank);
      add_memory(rank);
    }
    text_ += "\n]}\n";
    flush();
    return true;
  }

 private:
  void add(std::string_view event) {
    if (!first_) text_ += ",\n";
    first_ = false;
    text_ += event;
    if (text_.size() > kBuffered) flush();
  }
  void flush() {
    out_.write(text_);
    text_.clear();
  }

  void add_names(int rank) {
    const std::size_t stage = step_.graph.list_of(rank);
    const std::string of = step_.plays_stages()
                               ? fmt::format("stage {}", stage)
                               : fmt::format("rank {} (stage {})", step_.first_device(rank), stage);
    add(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})", rank,
                    of));
    for (int stream = 0; stream < kStreams; ++stream) {
      add(fmt::format(
          R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})", rank,
          stream, name_of(static_cast<Stream>(stream))));
    }
  }

  void add_tasks(int rank) {
    const std::size_t list = step_.graph.list_of(rank);
    const std::vector<Task>& tasks = step_.graph.lists[list].tasks;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const TaskTimes times = timeline_.of(rank)[i];
      if (times.end > times.start || tasks[i].channel >= 0) {
        add_slice(rank, tasks[i], step_.tasks[list][i], times);
      }
      if (tasks[i].channel >= 0) add_flow(rank, tasks[i], times);
    }
    for (const LoadPoint& point : link_load(step_, timeline_, rank)) {
      add_counter(rank, "link load", point.time, "GB/s", point.rate.value() * 1e-9);
    }
  }

  void add_slice(int rank, const Task& task, const StepTask& what, TaskTimes times) {
    const Tag tag = what.issued.tag();
    add(fmt::format(
        R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}","cat":"{}","args":{{"layer":{},"microbatch":{},"chunk":{}}}}})",
        rank, static_cast<int>(task.stream), microseconds(times.start),
        microseconds(times.end - times.start), operation_name(what), name_of(tag.pass), tag.layer,
        tag.microbatch, tag.chunk));
  }

  // The n-th message of a group goes from its n-th send to its n-th receive.
  void add_flow(int rank, const Task& task, TaskTimes times) {
    const bool sends = task.kind == TaskKind::send;
    if (!sends && task.kind != TaskKind::receive) return;
    const std::int32_t group = step_.graph.ranks[static_cast<std::size_t>(rank)]
                                   .groups[static_cast<std::size_t>(task.channel)];
    std::vector<std::int64_t>& counts = sends ? sent_ : received_;
    counts.resize(step_.graph.groups.size());
    const std::int64_t number = counts[static_cast<std::size_t>(group)]++;
    const std::int64_t id = number * static_cast<std::int64_t>(step_.graph.groups.size()) + group;
    add(fmt::format(
        R"({{"ph":"{}",{}"id":{},"pid":{},"tid":{},"ts":{},"name":"message","cat":"message"}})",
        sends ? "s" : "f", sends ? "" : R"("bp":"e",)", id, rank, static_cast<int>(task.stream),
        microseconds(sends ? times.start : times.end)));
  }

  void add_counter(int rank, std::string_view name, Picoseconds time, std::string_view unit,
                   double value) {
    add(fmt::format(R"({{"ph":"C","pid":{},"ts":{},"name":"{}","args":{{"{}":{:.6g}}}}})", rank,
                    microseconds(time), name, unit, value));
  }

  void add_memory(int rank) {
    const MemoryTimeline memory =
        memory_timeline(step_.graph.lists[step_.graph.list_of(rank)], timeline_.of(rank));
    for (const MemoryPoint& point : memory.points) {
      add_counter(rank, "memory", point.time, "GiB", point.bytes.value() / kGiB);
    }
  }

  OutputFile& out_;
  const StepGraph& step_;
  const Timeline& timeline_;
  std::string text_;
  bool first_ = true;
  std::vector<std::int64_t> sent_, received_;  // messages of each group so far
};

}  // namespace

Expected<void> write_trace(const std::filesystem::path& file, const StepSimulation& simulation,
                           const std::function<bool()>& interrupted) {
  auto out = OutputFile::open(file);
  if (!out) return tl::unexpected(out.error());
  if (!TraceWriter(*out, simulation).write(interrupted)) {
    return failure(file.string(), "interrupted");
  }
  return out->finish();
}

}  // namespace trainyard
