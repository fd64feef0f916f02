#include "cli/text/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/plan/groups_report.h"
#include "cli/text/estimate.h"
#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
#include "model/units.h"
#include "simulator/reading/critical_path.h"

namespace trainyard {
namespace {

constexpr std::size_t kPathRows = 12;

std::string path_table(const StepSimulation& simulation, const Style& style) {
  const auto shares =
      path_shares(simulation.step, critical_path(simulation.step, simulation.timeline));
  Seconds whole;
  for (const PathShare& share : shares) whole += share.time;
  Table table({{"critical path", "", Align::left}, {"tasks"}, {"time", "ms"}, {"share", "%"}});
  int tasks_of_all = 0;
  const auto row = [&](const std::string& name, int tasks, Seconds time) {
    tasks_of_all += tasks;
    table.add_row({name, count(tasks), milliseconds(time), percent(time / whole)});
  };
  const std::size_t shown = std::min(shares.size(), kPathRows);
  for (std::size_t i = 0; i < shown; ++i) row(shares[i].operation, shares[i].tasks, shares[i].time);
  PathShare rest{.operation = "everything else"};
  for (std::size_t i = shown; i < shares.size(); ++i) {
    rest.tasks += shares[i].tasks;
    rest.time += shares[i].time;
  }
  if (rest.tasks > 0) row(rest.operation, rest.tasks, rest.time);
  table.add_rule();
  row("from the first operation to the last", tasks_of_all, whole);
  return table.render(style);
}

// Neighbours that look the same share a row.
std::string stage_use_table(const StepSimulation& simulation, const Style& style) {
  Table table({{"stage", "", Align::left},
               {"kernels", "ms"},
               {"share", "%"},
               {"buffers at peak", "GiB"},
               {"at", "ms"},
               {"most of it", "", Align::left},
               {"", "", Align::left}});
  for (std::size_t i = 0; i < simulation.stages.size(); ++i) {
    const StageUse& use = simulation.stages[i];
    const auto& buffers = simulation.step.program->buffers;
    const std::string owner =
        use.memory.owner < 0
            ? std::string()
            : std::string(buffers[static_cast<std::size_t>(use.memory.owner)].name);
    table.add_row({fmt::format("{}", i), milliseconds(use.busy), percent(use.share),
                   fmt::format("{:.2f}", use.memory.peak.bytes.value() / kGiB),
                   milliseconds(to_seconds(use.memory.peak.time)), owner,
                   style.work(bar(use.share, kBarWidth / 2))});
  }
  return table.render(style);
}

std::string link_table(const StepSimulation& simulation, const Style& style) {
  if (simulation.links.empty()) return {};
  Table table({{"links", "", Align::left},
               {"number"},
               {"mean use", "%"},
               {"highest", "%"},
               {"", "", Align::left}});
  for (const LinkUtilisation& use : simulation.links) {
    table.add_row({use.kind, count(use.links), percent(use.mean), percent(use.most),
                   style.work(bar(use.mean, kBarWidth / 2))});
  }
  return "\n" + table.render(style);
}

std::string played_line(const StepSimulation& simulation, Seconds estimated) {
  const std::size_t ranks = simulation.step.graph.ranks.size();
  std::string folded = "one rank for each stage";
  if (!simulation.step.plays_stages()) folded = "one rank for all that are alike";
  if (!simulation.step.folded()) {
    folded = "every rank";
    if (!simulation.unfolded_because.empty()) folded += ": " + simulation.unfolded_because;
  }
  return wrap(fmt::format("Played {} operations of {} rank{} ({}). The estimate is {} ({} %).",
                          count(simulation.operations), count(static_cast<std::int64_t>(ranks)),
                          ranks == 1 ? "" : "s", folded, with_unit(estimated),
                          signed_percent(estimated / simulation.step_time - 1)));
}

std::string dynamic_line(const Question& question, const Plan& plan,
                         const StepSimulation& simulation) {
  const auto& sequences = question.scenario.simulation.sequences;
  if (!sequences || !sequences->dynamic) return {};
  return wrap(fmt::format("{} micro-batches a replica, of {} tokens at most; the plan has {}.",
                          count(simulation.step.program->microbatches),
                          count(most_tokens(question.job.job.training, plan)),
                          count(plan.microbatches)));
}

std::string disturbed_line(const StepConditions& conditions) {
  if (conditions.stragglers.empty() && conditions.jitter == 0) return {};
  return wrap("What kernels lose on slow devices and to jitter stands among the other times.");
}

// The step by parts, the critical path, stages and links, and the memory of the fullest stage,
// whose device has `memory`.
std::string tables(const StepSimulation& simulation, const Estimate& estimate, Bytes memory,
                   const Style& style) {
  return breakdown_table(estimate, style) + "\n" + path_table(simulation, style) + "\n" +
         stage_use_table(simulation, style) + link_table(simulation, style) + "\n" +
         memory_bars(estimate, memory, style);
}

}  // namespace

std::string simulation_report(const Question& question, const Plan& plan,
                              const StepSimulation& simulation, const Style& style) {
  const Candidate candidate{plan, as_estimate(question.job, plan, simulation), {}};
  const Cluster& cluster = question.job.job.cluster;
  return job_heading(question, style) + step_summary(question, candidate, style) +
         found_schedule(question, candidate.plan, style) + "\n" +
         tables(simulation, candidate.estimate, cluster.device.memory, style) + "\n" +
         verdict(candidate.estimate, cluster, style) +
         played_line(simulation, estimate(question.job, plan).step_time) +
         dynamic_line(question, plan, simulation) + disturbed_line(question.scenario.simulation);
}

std::string grouped_simulation_report(const Question& question, const UnlikeStep& step,
                                      const Style& style) {
  const Device& fullest = fullest_device(*question.scenario.unlike, step);
  return grouped_estimate_report(question, step.answer, style) + "\n" +
         tables(step.simulation, step.answer.candidate.estimate, fullest.memory, style) + "\n" +
         played_line(step.simulation, step.estimated) +
         dynamic_line(question, step.answer.best.plan, step.simulation) +
         disturbed_line(question.scenario.simulation);
}

}  // namespace trainyard
