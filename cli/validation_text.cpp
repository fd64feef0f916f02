#include "cli/validation_text.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>

#include "cli/table.h"
#include "cli/text.h"

namespace trainyard {
namespace {

constexpr std::size_t kNameWidth = 38;
constexpr double kGib = 1073741824.0;

std::string short_name(const std::string& file) {
  return std::filesystem::path(file).filename().string();
}

template <typename T, typename F>
std::string cell(const std::optional<T>& value, F text) {
  return value ? text(*value) : "–";
}

std::string time_cell(Seconds time) { return number(time.value()); }
std::string memory_cell(Bytes bytes) { return fmt::format("{:.1f}", bytes.value() / kGib); }

std::string error_cell(double error, const Style& style) {
  constexpr double kGood = 0.05;
  constexpr double kPoor = 0.15;
  const std::string text = signed_percent(error);
  const double size = std::abs(error);
  return size <= kGood ? style.good(text) : (size > kPoor ? style.bad(text) : text);
}

std::string rows_table(const ValidationReport& report, const std::string& file,
                       const Style& style) {
  Table table({{short_name(file), "", Align::left},
               {"predicted", "s"},
               {"measured", "s"},
               {"error", "%"},
               {"memory", "GiB"},
               {"measured", "GiB"},
               {"error", "%"},
               {"fits", "", Align::left}});
  const auto error = [&style](double value) { return error_cell(value, style); };
  for (const ValidationRow& row : report.rows) {
    if (row.file != file) {
      continue;
    }
    table.add_row({elide(row.name, kNameWidth), cell(row.predicted, time_cell),
                   cell(row.measured, time_cell), cell(row.error, error),
                   cell(row.predicted_memory, memory_cell), cell(row.measured_memory, memory_cell),
                   cell(row.memory_error, error),
                   row.predicted ? (row.feasible ? "yes" : style.bad("no")) : "–"});
  }
  return table.render(style);
}

std::string notes(const ValidationReport& report) {
  std::string text;
  for (const ValidationRow& row : report.rows) {
    if (!row.note.empty()) {
      const std::string label = row.predicted ? "note on " : "cannot be priced: ";
      text += wrap(fmt::format("{}{}, {}: {}", label, short_name(row.file), row.name, row.note));
    }
  }
  return text.empty() ? text : "\n" + text;
}

std::string groups_table(const ValidationReport& report, const Style& style) {
  if (report.groups.empty()) {
    return "";
  }
  Table table({{"runs that differ only in their plan, from", "", Align::left},
               {"plans"},
               {"Kendall's τ"},
               {"regret", "%"}});
  for (const PlanGroup& group : report.groups) {
    table.add_row({elide(group.plans.front(), kNameWidth), fmt::format("{}", group.plans.size()),
                   cell(group.kendall_tau, [](double tau) { return fmt::format("{:.2f}", tau); }),
                   percent(group.regret)});
  }
  return "\n" + table.render(style);
}

std::string files_table(const ValidationReport& report, const Style& style) {
  const auto share = [](double value) { return percent(value); };
  Table table({{"file", "", Align::left},
               {"rows"},
               {"priced"},
               {"mean error", "%"},
               {"median error", "%"}});
  int rows = 0;
  int priced = 0;
  for (const FileSummary& file : report.files) {
    table.add_row({short_name(file.file), count(file.rows), count(file.priced),
                   cell(file.mape, share), cell(file.median, share)});
    rows += file.rows;
    priced += file.priced;
  }
  table.add_rule();
  table.add_row({style.strong("all"), count(rows), count(priced), cell(report.mape, share),
                 cell(report.median, share)});
  std::string text = "\n" + table.render(style);
  if (report.memory_mape) {
    text += fmt::format("mean error of peak memory: {} %\n", percent(*report.memory_mape));
  }
  return text;
}

}  // namespace

std::string validation_text(const ValidationReport& report, const Style& style) {
  std::string text;
  for (const FileSummary& file : report.files) {
    text += (text.empty() ? "" : "\n") + rows_table(report, file.file, style);
  }
  return text + notes(report) + groups_table(report, style) + files_table(report, style);
}

}  // namespace trainyard
