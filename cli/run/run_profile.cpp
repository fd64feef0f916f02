#include "cli/run/run_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "executor/measure/step_gaps.h"
#include "model/units.h"
#include "planner/request.h"
#include "scenarios/write/spans.h"
#include "simulator/alone.h"
#include "simulator/reading/comparison.h"
#include "simulator/reading/critical_path.h"
#include "simulator/step.h"
#include "simulator/step/link_load.h"

namespace trainyard {
namespace {

using Boards = std::vector<std::optional<Board>>;

// The simulated step that a run is compared with.
struct PredictedStep {
  StepGraph step;
  Timeline timeline;
  Seconds time;
  double mfu = 0;            // 0 for a rank that runs alone
  std::vector<Bytes> peaks;  // by stage; 0 for stages that were not simulated
};

int stage_of_rank(const Setting& setting, int rank) {
  return RankLayout(setting.plan, setting.model.kv_heads).coordinates(rank).stage;
}

Expected<PredictedStep> predicted_alone(const Question& question, const Setting& setting,
                                        int rank) {
  const int stage = stage_of_rank(setting, rank);
  auto played = simulate_alone(question.job, setting.plan, stage);
  if (!played) return tl::unexpected(played.error());
  PredictedStep out{std::move(played->step), std::move(played->timeline), played->step_time, 0, {}};
  out.peaks.resize(out.step.graph.lists.size());
  out.peaks[static_cast<std::size_t>(stage)] =
      memory_timeline(out.step.graph.lists[static_cast<std::size_t>(stage)], out.timeline.of(0))
          .peak.bytes;
  return out;
}

Expected<PredictedStep> predicted(const Question& question, const Setting& setting,
                                  const RunPlan& run) {
  if (run.alone) return predicted_alone(question, setting, *run.alone);
  auto played = simulate(question.job, setting.plan);
  if (!played) return tl::unexpected(played.error());
  const double mfu = as_estimate(question.job, setting.plan, *played).mfu;
  PredictedStep out{
      std::move(played->step), std::move(played->timeline), played->step_time, mfu, {}};
  for (const StageUse& use : played->stages) out.peaks.push_back(use.memory.peak.bytes);
  return out;
}

// Number of steps that all ranks have done.
std::int64_t common_steps(const Boards& boards) {
  std::int64_t common = -1;
  for (const auto& board : boards) {
    const std::int64_t done = board ? board->head().steps_done.load() : 0;
    common = common < 0 ? done : std::min(common, done);
  }
  return std::max<std::int64_t>(common, 0);
}

void add_steps(Boards& boards, Profile& profile) {
  const std::int64_t done = common_steps(boards);
  for (std::int64_t i = 0; i < done; ++i) {
    const StepRecord& first = boards.front()->steps()[i];
    ProfiledStep step{.time = Seconds(first.time)};
    if (!profile.alone) {
      step.loss = first.loss;
      step.gradient_norm = first.gradient_norm;
    }
    for (auto& board : boards) step.time = std::max(step.time, Seconds(board->steps()[i].time));
    profile.steps.push_back(step);
  }
}

void add_ranks(const Setting& setting, Boards& boards, Profile& profile) {
  for (auto& board : boards) {
    if (!board) continue;
    const BoardHead& head = board->head();
    profile.ranks.push_back({.rank = head.rank,
                             .stage = stage_of_rank(setting, head.rank),
                             .host = head.host.data(),
                             .peak_memory = Bytes(head.peak_bytes),
                             .reserved_memory = Bytes(head.reserved_bytes)});
  }
}

// Notes the longest gap of a rank or stream, and the operations around it.
template <typename Of>
void name_gap(const StepGap& gap, const std::vector<IssuedOperation>& operations, Of& of) {
  of.longest_gap = gap.time;
  if (gap.after < 0) return;
  of.after = described(operations[static_cast<std::size_t>(gap.after)]);
  of.before = described(operations[static_cast<std::size_t>(gap.before)]);
}

// Adds the gaps between the operations of the rank's last step. Requires: it has done one.
void add_gaps(const std::vector<IssuedOperation>& operations, Board& board, ProfiledRank& rank) {
  std::vector<TimedOperation> timed;
  const OperationRecord* record = board.operations();
  for (const IssuedOperation& issued : operations) {
    timed.push_back({issued.operation->stream, is_communication(issued.operation->kind),
                     Seconds(record->begin), Seconds(record->end)});
    ++record;
  }
  const Seconds step(board.steps()[board.head().steps_done - 1].time);
  if (step == Seconds(0)) return;
  const auto share = [step](Seconds time) { return std::clamp(time / step, 0.0, 1.0); };
  const StepGaps gaps = gaps_of(timed);
  rank.between = share(gaps.all);
  name_gap(gaps.longest, operations, rank);
  for (const StreamGaps& of : gaps.streams) {
    ProfiledStream stream{.stream = std::string(name_of(of.stream)),
                          .between = share(of.all),
                          .communicating = share(of.communication)};
    name_gap(of.longest, operations, stream);
    rank.streams.push_back(std::move(stream));
  }
}

using ByOperation = std::map<std::pair<int, std::string>, ProfiledOperation>;

// The operations of a stage in the order of its list, as the simulator's tasks name them.
std::vector<std::string> names_of(const StepGraph& step, std::size_t stage) {
  std::vector<std::string> names;
  for (const StepTask& task : step.tasks[stage]) {
    if (task.kind == StepTaskKind::operation) names.push_back(operation_name(task));
  }
  return names;
}

// Adds the gaps of all ranks that have done a step.
void add_gaps(const StepGraph& step, Boards& boards, Profile& profile) {
  auto rank = profile.ranks.begin();
  for (auto& board : boards) {
    if (!board) continue;
    ProfiledRank& of = *rank++;
    if (board->head().steps_done == 0) continue;
    std::vector<IssuedOperation> operations;
    for (const StepTask& task : step.tasks[static_cast<std::size_t>(of.stage)]) {
      if (task.kind == StepTaskKind::operation) operations.push_back(task.issued);
    }
    add_gaps(operations, *board, of);
  }
}

int rank_of_stage(const StepGraph& step, int stage) {
  const auto& ranks = step.graph.ranks;
  const auto found = std::find_if(ranks.begin(), ranks.end(),
                                  [stage](const auto& rank) { return rank.list == stage; });
  return static_cast<int>(found - ranks.begin());
}

// Adds predicted times of the stages that were run; for a rank alone that is one stage.
void add_predicted(const PredictedStep& predicted, const Profile& profile, ByOperation& all) {
  for (std::size_t stage = 0; stage < predicted.step.tasks.size(); ++stage) {
    const auto is_of_it = [stage](const ProfiledRank& rank) {
      return rank.stage == static_cast<int>(stage);
    };
    if (std::ranges::none_of(profile.ranks, is_of_it)) continue;
    const int rank = rank_of_stage(predicted.step, static_cast<int>(stage));
    const auto times = predicted.timeline.of(rank);
    const std::vector<StepTask>& tasks = predicted.step.tasks[stage];
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const std::string name = operation_name(tasks[i]);
      ProfiledOperation& of = all[{static_cast<int>(stage), name}];
      of.stage = static_cast<int>(stage);
      of.operation = name;
      of.of_class = kernel_class(tasks[i]);
      ++of.tasks;
      of.predicted += to_seconds(times[i].end - times[i].start);
    }
  }
}

// Adds measured times, as the mean over the ranks of a stage that have measured steps.
void add_measured(const StepGraph& step, const Setting& setting, const RunPlan& run, Boards& boards,
                  ByOperation& all) {
  std::map<int, std::vector<Board*>> by_stage;
  for (auto& board : boards) {
    if (!board || board->head().steps_done <= run.warmup) continue;
    by_stage[stage_of_rank(setting, board->head().rank)].push_back(&*board);
  }
  for (const auto& [stage, ranks] : by_stage) {
    const std::vector<std::string> names = names_of(step, static_cast<std::size_t>(stage));
    for (Board* board : ranks) {
      const auto steps = static_cast<double>(board->head().steps_done - run.warmup);
      const double share = 1 / (steps * static_cast<double>(ranks.size()));
      for (std::size_t i = 0; i < names.size(); ++i) {
        all[{stage, names[i]}].measured += Seconds(board->operations()[i].total * share);
      }
    }
  }
}

// One rank of the trace, either predicted or measured.
struct TracedRank {
  int rank = 0;  // number in the simulation's graph
  std::string process;
};

// The measured times of the tasks in a stage's list; tasks that are not operations take no time.
std::vector<TaskTimes> measured_times(const std::vector<StepTask>& tasks, Board& board) {
  std::vector<TaskTimes> times;
  const OperationRecord* record = board.operations();
  Picoseconds before{0};
  for (const StepTask& task : tasks) {
    if (task.kind != StepTaskKind::operation) {
      times.push_back({before, before});
      continue;
    }
    times.push_back({to_picoseconds(Seconds(record->begin)), to_picoseconds(Seconds(record->end))});
    before = times.back().end;
    ++record;
  }
  return times;
}

// The track of a task. Operations of one stream that the simulation plays side by side get tracks
// of their own: viewers cannot show spans of one track that overlap without nesting.
std::string track_of(const Task& task, const StepTask& what) {
  if (what.kind != StepTaskKind::operation) return "launch";
  const std::string_view stream = name_of(what.issued.operation->stream);
  switch (task.stream) {
    case Stream::pipeline:
    case Stream::gradient:
    case Stream::receive:
      return fmt::format("{}, {}", stream, name_of(task.stream));
    case Stream::tensor:
    case Stream::expert:
      return fmt::format("{}, beside kernels", stream);
    default:
      return std::string(stream);
  }
}

class RunTrace {
 public:
  explicit RunTrace(const StepGraph& step) : step_(step) {}

  void add_predicted(const TracedRank& of, const Timeline& timeline) {
    add(of, timeline, true);
    add_load(of, link_load(step_, timeline, of.rank));
  }

  // Launches are not measured, so only the operations are added.
  void add_measured(const TracedRank& of, const Timeline& timeline) {
    add(of, timeline, false);
    add_load(of, measured_link_load(step_, timeline, of.rank));
  }

  std::string text() const { return span_trace(spans_, counters_); }

 private:
  void add(const TracedRank& of, const Timeline& timeline, bool has_launches) {
    const std::size_t list = step_.graph.list_of(of.rank);
    const std::vector<StepTask>& tasks = step_.tasks[list];
    const auto times = timeline.of(of.rank);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].kind != StepTaskKind::operation && !has_launches) continue;
      spans_.push_back({of.process, track_of(step_.graph.lists[list].tasks[i], tasks[i]),
                        operation_name(tasks[i]), to_seconds(times[i].start),
                        to_seconds(times[i].end)});
    }
    TraceCounter memory{of.process, "memory", "GiB", {}};
    for (const MemoryPoint& point : memory_timeline(step_.graph.lists[list], times).points) {
      memory.points.push_back({to_seconds(point.time), point.bytes.value() / kGiB});
    }
    counters_.push_back(std::move(memory));
  }

  void add_load(const TracedRank& of, const std::vector<LoadPoint>& points) {
    TraceCounter load{of.process, "link load", "GB/s", {}};
    for (const LoadPoint& point : points) {
      load.points.push_back({to_seconds(point.time), point.rate.value() * 1e-9});
    }
    counters_.push_back(std::move(load));
  }

  const StepGraph& step_;
  std::vector<Span> spans_;
  std::vector<TraceCounter> counters_;
};

std::string note_of(const Setting& setting) {
  if (setting.plan.optimizer_barrier) return "";
  return "the gradient is not clipped, for the update does not wait for its norm "
         "(optimizer_barrier false): other weights than those of a plan that waits";
}

}  // namespace

std::string run_trace(const Question& question, const Setting& setting, const RunPlan& run,
                      Boards& boards) {
  const auto expected = predicted(question, setting, run);
  if (!expected) return span_trace({});
  RunTrace trace(expected->step);
  Timeline measured = expected->timeline;
  for (auto& board : boards) {
    if (!board || board->head().steps_done == 0) continue;
    const int rank = board->head().rank;
    const int stage = stage_of_rank(setting, rank);
    const int played = rank_of_stage(expected->step, stage);
    trace.add_predicted({played, fmt::format("rank {} predicted", rank)}, expected->timeline);
    std::ranges::copy(
        measured_times(expected->step.tasks[static_cast<std::size_t>(stage)], *board),
        measured.times.begin() +
            static_cast<std::ptrdiff_t>(measured.first[static_cast<std::size_t>(played)]));
    trace.add_measured({played, fmt::format("rank {} measured", rank)}, measured);
  }
  return trace.text();
}

Profile profile_of(const Question& question, const Setting& setting, const RunPlan& run,
                   Boards& boards) {
  Profile profile{.name = question.scenario.name,
                  .backend = std::string(name_of(run.backend)),
                  .seed = static_cast<std::int64_t>(setting.seed),
                  .learning_rate = setting.descent.learning_rate,
                  .same_batch = run.same_batch,
                  .note = note_of(setting),
                  .alone = run.alone.has_value(),
                  .plan = request_of(setting.plan)};
  add_steps(boards, profile);
  profile.warmup_steps = std::min(run.warmup, static_cast<int>(profile.steps.size()));
  add_ranks(setting, boards, profile);
  const auto expected = predicted(question, setting, run);
  if (!expected) return profile;
  profile.predicted_step_time = expected->time;
  if (const Seconds measured = mean_step_time(profile); measured > Seconds(0)) {
    if (!profile.alone) profile.mfu = expected->mfu * (expected->time / measured);
  }
  for (ProfiledRank& rank : profile.ranks) {
    rank.predicted_peak_memory = expected->peaks[static_cast<std::size_t>(rank.stage)];
  }
  add_gaps(expected->step, boards, profile);
  ByOperation all;
  add_predicted(*expected, profile, all);
  add_measured(expected->step, setting, run, boards, all);
  for (auto& [key, of] : all) profile.operations.push_back(std::move(of));
  std::stable_sort(profile.operations.begin(), profile.operations.end(),
                   [](const ProfiledOperation& a, const ProfiledOperation& b) {
                     return std::abs((a.predicted - a.measured).value()) >
                            std::abs((b.predicted - b.measured).value());
                   });
  return profile;
}

}  // namespace trainyard
