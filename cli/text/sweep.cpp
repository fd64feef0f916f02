#include "cli/text/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
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

// Keys that the points override, in the order of the sweep's axes.
std::vector<std::string> keys_of(std::vector<PointRow> rows) {
  std::ranges::sort(rows, {}, &PointRow::point);
  std::vector<std::string> keys;
  for (const PointRow& row : rows) {
    for (const auto& [key, value] : overrides_of(row)) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

// The shortest end of a key that tells it from the others.
std::string short_key(const std::string& key, const std::vector<std::string>& keys) {
  for (std::size_t at = key.find_last_of("./"); at != std::string::npos && at > 0;
       at = key.find_last_of("./", at - 1)) {
    const std::string_view tail = std::string_view(key).substr(at);
    const auto others = std::ranges::count_if(keys, [&tail](const std::string& other) {
      return std::string_view(other).ends_with(tail);
    });
    if (others == 1) return std::string(tail.substr(1));
  }
  return key;
}

struct PointFigure {
  Column column;
  std::string (*cell)(const PointRow& row);
};
const PointFigure kFiguresOfPoints[] = {
    {{"step", "s"}, [](const PointRow& row) { return number(row.figure("step_time_s")); }},
    {{"tokens/s", "/device"},
     [](const PointRow& row) { return number(row.figure("tokens_per_second_per_device")); }},
    {{"MFU", "%"}, [](const PointRow& row) { return percent(row.figure("mfu")); }},
    {{"memory", "GiB"},
     [](const PointRow& row) {
       return fmt::format("{:.1f}", row.figure("peak_memory_bytes") / kGiB);
     }},
    {{"goodput", "%"},
     [](const PointRow& row) {
       return std::isfinite(row.figure("goodput")) ? percent(row.figure("goodput")) : "";
     }},
    {{"cost", "USD/M tokens"}, [](const PointRow& row) {
       const double tokens = row.figure("tokens_per_second") * row.figure("step_time_s");
       const double cost = row.figure("cost_per_step_usd") / tokens;
       return std::isfinite(cost) ? number(1e6 * cost) : "";
     }}};

bool is_known(const PointFigure& figure, const std::vector<PointRow>& rows) {
  return std::ranges::any_of(rows, [&](const PointRow& row) { return !figure.cell(row).empty(); });
}

Table table_of(const std::vector<PointRow>& rows, const std::vector<std::string>& keys) {
  constexpr std::size_t kLongestValue = 16;
  std::vector<Column> columns = {{"point", ""}};
  for (const std::string& key : keys) columns.push_back({short_key(key, keys), ""});
  for (const PointFigure& figure : kFiguresOfPoints) {
    if (is_known(figure, rows)) columns.push_back(figure.column);
  }
  Table table(columns);
  for (const PointRow& row : rows) {
    const auto overrides = overrides_of(row);
    std::vector<std::string> cells = {count(row.point)};
    for (const std::string& key : keys) {
      const auto own =
          std::ranges::find(overrides, key, [](const auto& pair) { return pair.first; });
      cells.push_back(own == overrides.end() ? "·" : elide(own->second, kLongestValue));
    }
    for (const PointFigure& figure : kFiguresOfPoints) {
      if (is_known(figure, rows)) cells.push_back(figure.cell(row));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

bool fits_in_lines(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (display_width(line) > kLineWidth) return false;
  }
  return true;
}

// The table of the best points; empty for one point, which is described above, or if the table is
// too wide.
std::string best_table(const SweepSummary& summary, const Style& style) {
  const std::vector<std::string> keys = keys_of(summary.best);
  if (summary.best.size() < 2 || keys.empty()) return "";
  const std::string table = table_of(summary.best, keys).render(style);
  if (!fits_in_lines(table)) return "";
  return fmt::format(
      "\n{}\n{}",
      style.strong(fmt::format("the best {} by {}", summary.best.size(), summary.order.label)),
      table);
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
  if (!summary.best.empty()) {
    const PointRow& best = summary.best.front();
    text += line("best", fmt::format("by {}: {}", summary.order.label, best_in_words(best)));
    text += line("", overrides_in_words(best));
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
  return text + best_table(summary, style);
}

}  // namespace trainyard
