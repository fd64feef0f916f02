#include "cli/text/sweep.h"

#include <fmt/format.h>

#include "cli/text/columns.h"
#include "scenarios/sweep/results/row_json.h"

namespace trainyard {
namespace {

std::string line(std::string_view head, const std::string& text) {
  constexpr std::size_t kHead = 14;
  return fmt::format("{}{}", pad_right(head, kHead), wrap(text, kHead));
}

std::string counts_in_words(const SweepSummary& summary) {
  const SweepOutcome& outcome = summary.outcome;
  std::string text =
      fmt::format("{} of {}", count(outcome.found + outcome.answered), count(outcome.points));
  if (outcome.found > 0)
    text += fmt::format(", {} of them found in the file", count(outcome.found));
  return text;
}

std::string verdicts_in_words(const SweepSummary& summary) {
  std::string text = fmt::format("{} fit, {} do not fit, {} refused", count(summary.done),
                                 count(summary.too_large), count(summary.refused));
  if (summary.left_out() > 0) {
    text += fmt::format(", {} left out by conditions", count(summary.left_out()));
  }
  return text;
}

std::string best_in_words(const PointRow& row) {
  std::string text =
      fmt::format("point {}: {}", count(row.point), with_unit(Seconds(row.figure("step_time_s"))));
  text += fmt::format(" a step, MFU {} %, {} peak memory", percent(row.figure("mfu")),
                      with_unit(Bytes(row.figure("peak_memory_bytes"))));
  if (row.figure("goodput") > 0)
    text += fmt::format(", goodput {} %", percent(row.figure("goodput")));
  return text;
}

}  // namespace

std::string overrides_in_words(const PointRow& row) {
  std::string text;
  for (const auto& [key, value] : overrides_of(row)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
  }
  return text.empty() ? "as the scenario has it" : text;
}

std::string sweep_report(const SweepSummary& summary, const Style& style) {
  std::string text = style.strong(summary.name) + "\n";
  text += line("points", counts_in_words(summary));
  text += line("answers", verdicts_in_words(summary));
  if (summary.best) {
    text +=
        line("best", fmt::format("by {}: {}", summary.order.label, best_in_words(*summary.best)));
    text += line("", overrides_in_words(*summary.best));
  }
  if (summary.refused > 0) text += line("refused", fmt::format("for one, {}", summary.refusal));
  if (summary.outcome.lost_workers > 0) {
    text += line("workers",
                 fmt::format("{} died; their points went to others", summary.outcome.lost_workers));
  }
  text += line("results", fmt::format("{}; next: trainyard report {} -o report.html",
                                      summary.file.string(), summary.file.string()));
  if (!summary.outcome.complete())
    text += line("stopped", "run the same command again to continue");
  return text;
}

}  // namespace trainyard
