#include "cli/text/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
#include "executor/backend.h"

namespace trainyard {
namespace {

constexpr std::size_t kOperationsShown = 24;
constexpr std::size_t kRanksShown = 4;

std::string exact_milliseconds(Seconds time) { return fmt::format("{:.3f}", 1e3 * time.value()); }

// "–" for operations that were not timed, because they take no time on any stream.
std::string measured_milliseconds(Seconds time) {
  return time > Seconds(0) ? exact_milliseconds(time) : "–";
}

std::string error_of(Seconds predicted, Seconds measured) {
  const bool both = predicted > Seconds(0) && measured > Seconds(0);
  return both ? signed_percent(predicted / measured - 1) : "";
}

std::string outcome(const std::optional<double>& number) {
  return number ? fmt::format("{:.6f}", *number) : "–";
}

// The table of steps; a rank alone has neither loss nor gradient norm.
std::string step_table(const Profile& profile, const Style& style) {
  std::vector<Column> columns = {{"step", "", Align::left}, {"time", "ms"}};
  if (!profile.alone) columns.insert(columns.end(), {{"loss"}, {"gradient norm"}});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    const ProfiledStep& step = profile.steps[i];
    const bool warmup = static_cast<int>(i) < profile.warmup_steps;
    std::vector<std::string> row = {fmt::format("{}{}", i, warmup ? " (warm-up)" : ""),
                                    exact_milliseconds(step.time)};
    if (!profile.alone) {
      row.push_back(outcome(step.loss));
      row.push_back(step.gradient_norm == 0 ? "overflow" : outcome(step.gradient_norm));
    }
    table.add_row(std::move(row));
  }
  return table.render(style);
}

// Times of a class of operations in a step of a rank, mean over the stages.
struct ClassTotal {
  std::string name;
  double tasks = 0;
  Seconds predicted, measured;
  Seconds difference() const { return measured - predicted; }
};

// The totals by class, the largest difference first.
std::vector<ClassTotal> class_totals(const Profile& profile) {
  std::set<int> stages;
  std::map<std::string, ClassTotal> by_name;
  for (const ProfiledOperation& of : profile.operations) {
    stages.insert(of.stage);
    ClassTotal& total = by_name[of.of_class];
    total.name = of.of_class;
    total.tasks += of.tasks;
    total.predicted += of.predicted;
    total.measured += of.measured;
  }
  std::vector<ClassTotal> totals;
  for (auto& [name, total] : by_name) {
    const auto share = 1 / static_cast<double>(stages.size());
    totals.push_back({name, share * total.tasks, share * total.predicted, share * total.measured});
  }
  std::ranges::stable_sort(totals, std::greater<>(), [](const ClassTotal& total) {
    return std::abs(total.difference().value());
  });
  return totals;
}

std::vector<std::string> class_row(const ClassTotal& of) {
  const double difference = 1e3 * of.difference().value();
  return {of.name,
          of.tasks > 0 ? fmt::format("{:.0f}", of.tasks) : "",
          exact_milliseconds(of.predicted),
          measured_milliseconds(of.measured),
          fmt::format("{:+.3f}", difference),
          error_of(of.predicted, of.measured)};
}

// The table of classes, with their sum and the step. These differ: operations overlap, and stages
// wait.
std::string class_table(const Profile& profile, const Style& style) {
  Table table({{"operations", "", Align::left},
               {"tasks", "a step"},
               {"predicted", "ms"},
               {"measured", "ms"},
               {"longer", "ms"},
               {"error", "%"}});
  ClassTotal all{.name = "all operations"};
  for (const ClassTotal& of : class_totals(profile)) {
    table.add_row(class_row(of));
    all.tasks += of.tasks;
    all.predicted += of.predicted;
    all.measured += of.measured;
  }
  table.add_rule();
  table.add_row(class_row(all));
  table.add_row(class_row({.name = "the step",
                           .predicted = profile.predicted_step_time,
                           .measured = mean_step_time(profile)}));
  return table.render(style);
}

std::string operation_table(const Profile& profile, const Style& style) {
  Table table({{"stage", "", Align::left},
               {"operation", "", Align::left},
               {"tasks", "a step"},
               {"predicted", "ms"},
               {"measured", "ms"},
               {"error", "%"}});
  for (std::size_t i = 0; i < std::min(profile.operations.size(), kOperationsShown); ++i) {
    const ProfiledOperation& of = profile.operations[i];
    table.add_row({fmt::format("{}", of.stage), of.operation, count(of.tasks),
                   exact_milliseconds(of.predicted), measured_milliseconds(of.measured),
                   error_of(of.predicted, of.measured)});
  }
  const std::string rest = profile.operations.size() > kOperationsShown
                               ? fmt::format("{} more kinds of operations differ by less.\n",
                                             profile.operations.size() - kOperationsShown)
                               : "";
  return table.render(style) + rest;
}

// The ranks that spend most time between operations.
std::string gap_table(const Profile& profile, const Style& style) {
  std::vector<const ProfiledRank*> ranks;
  for (const ProfiledRank& rank : profile.ranks) {
    if (!rank.streams.empty()) ranks.push_back(&rank);
  }
  if (ranks.empty()) return "";
  std::ranges::stable_sort(ranks, std::greater<>(), &ProfiledRank::between);
  Table table({{"rank", "", Align::left},
               {"stream", "", Align::left},
               {"idle", "% of the step"},
               {"communicating", "% of the step"},
               {"longest", "ms"}});
  const std::size_t shown = std::min(ranks.size(), kRanksShown);
  for (const ProfiledRank* rank : std::span(ranks).first(shown)) {
    table.add_row({fmt::format("{}", rank->rank), "all", fmt::format("{:.1f}", 100 * rank->between),
                   "", exact_milliseconds(rank->longest_gap)});
    for (const ProfiledStream& of : rank->streams) {
      table.add_row({"", of.stream, fmt::format("{:.1f}", 100 * of.between),
                     fmt::format("{:.1f}", 100 * of.communicating),
                     exact_milliseconds(of.longest_gap)});
    }
  }
  const std::string rest =
      ranks.size() > shown
          ? fmt::format("{} more ranks have less between their operations (--format json).\n",
                        ranks.size() - shown)
          : "";
  return "\n" +
         wrap(
             "Between operations, in the last step; communicating: of it, while another stream of "
             "the rank communicated; --format json says what ran before and after the longest:") +
         table.render(style) + rest;
}

std::string memory_line(const Profile& profile) {
  const auto fullest = std::max_element(
      profile.ranks.begin(), profile.ranks.end(),
      [](const ProfiledRank& a, const ProfiledRank& b) { return a.peak_memory < b.peak_memory; });
  if (fullest == profile.ranks.end()) return "";
  const bool on_host = profile.backend == name_of(BackendKind::cpu);
  const Bytes measured = fullest->peak_memory, predicted = fullest->predicted_peak_memory;
  if (measured == Bytes(0)) {
    if (predicted == Bytes(0)) return "";
    return fmt::format("Memory: none was held; {} predicted.\n", with_unit(predicted));
  }
  const std::string beside = predicted > Bytes(0)
                                 ? fmt::format(", {} predicted ({} %)", with_unit(predicted),
                                               signed_percent(predicted / measured - 1))
                                 : "";
  return wrap(fmt::format("Memory: at most {} on rank {}{}; {}.", with_unit(measured),
                          fullest->rank, beside,
                          on_host ? "buffers of the program"
                                  : fmt::format("given out by the device's pool, which kept {}",
                                                with_unit(fullest->reserved_memory))));
}

std::string between_line(const Profile& profile) {
  const auto idlest = std::ranges::max_element(profile.ranks, {}, &ProfiledRank::between);
  if (idlest == profile.ranks.end() || mean_step_time(profile) == Seconds(0)) return "";
  const std::string longest =
      idlest->after.empty()
          ? ""
          : fmt::format("; its longest time {}, after {} and before {}",
                        with_unit(idlest->longest_gap), idlest->after, idlest->before);
  return wrap(fmt::format("Between operations: at most {:.1f} % of a step, on rank {}{}.",
                          100 * idlest->between, idlest->rank, longest));
}

std::string step_line(const Profile& profile) {
  const Seconds measured = mean_step_time(profile);
  if (measured == Seconds(0)) return "No step was measured.\n";
  // On the CPU there is no MFU: the scenario's peak is another device's.
  const bool on_host = profile.backend == name_of(BackendKind::cpu);
  return fmt::format(
      "Step: {} measured, {} predicted ({} %){}.\n", with_unit(measured),
      with_unit(profile.predicted_step_time), error_of(profile.predicted_step_time, measured),
      on_host || !profile.mfu ? "" : fmt::format(", MFU {:.1f} %", 100 * *profile.mfu));
}

}  // namespace

std::string run_report(const Profile& profile, const Style& style) {
  const std::size_t ranks = profile.ranks.size();
  std::string text = fmt::format("{}\n{} rank{}, {}, seed {}\n\n", profile.name, ranks,
                                 ranks == 1 ? "" : "s", profile.backend, profile.seed);
  text += step_table(profile, style);
  if (!profile.note.empty()) text += "\n" + wrap(fmt::format("Note: {}.", profile.note));
  if (!profile.operations.empty() && mean_step_time(profile) > Seconds(0)) {
    text += "\n" +
            wrap(
                "A rank's step by classes of operations, mean over the stages; those that "
                "contribute most to the difference first. They overlap and wait for each other, "
                "so they do not add up to the step:") +
            class_table(profile, style);
    text += "\nBy what contributes most to the difference, kind by kind:\n" +
            operation_table(profile, style);
  }
  text += gap_table(profile, style);
  return text + "\n" + step_line(profile) + between_line(profile) + memory_line(profile);
}

}  // namespace trainyard
