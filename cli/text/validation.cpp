#include "cli/text/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
#include "model/units.h"

namespace trainyard {
namespace {

constexpr std::size_t kNameWidth = 38;
constexpr std::size_t kWorstRows = 10;
constexpr std::size_t kWorstGroups = 8;

std::string short_name(const std::string& file) {
  return std::filesystem::path(file).filename().string();
}

template <typename T, typename F>
std::string cell(const std::optional<T>& value, F text) {
  return value ? text(*value) : "–";
}

std::string time_cell(Seconds time) { return number(time.value()); }
std::string memory_cell(Bytes bytes) { return fmt::format("{:.1f}", bytes.value() / kGiB); }
std::string share_cell(double share) { return fmt::format("{:.0f}", 100 * share); }

// Colours an error: green up to 5 %, red beyond 15 %.
std::string graded(double error, const std::string& text, const Style& style) {
  constexpr double kGood = 0.05;
  constexpr double kPoor = 0.15;
  const double size = std::abs(error);
  return size <= kGood ? style.good(text) : (size > kPoor ? style.bad(text) : text);
}

auto error_cell(const Style& style) {
  return [&style](double error) { return graded(error, signed_percent(error), style); };
}

auto mean_cell(const Style& style) {
  return [&style](double error) { return graded(error, percent(error), style); };
}

// Tables of ErrorSummary ---------------------------------------------------------------------

class ErrorTable {
 public:
  ErrorTable(std::string head, const ValidationReport& report, const Style& style)
      : held_out_(report.all.held_out_mape.has_value()),
        memory_(report.all.memory_mape.has_value()),
        style_(style),
        table_(columns(std::move(head))) {}

  void add(const std::string& name, const ErrorSummary& errors) {
    std::vector<std::string> cells = {name,
                                      rows_of(errors),
                                      cell(errors.mape, mean_cell(style_)),
                                      cell(errors.median, percent),
                                      cell(errors.bias, signed_percent),
                                      cell(errors.coverage, share_cell)};
    if (held_out_) {
      cells.push_back(cell(errors.held_out_mape, mean_cell(style_)));
      cells.push_back(cell(errors.held_out_median, percent));
      cells.push_back(cell(errors.held_out_coverage, share_cell));
    }
    if (memory_) {
      cells.push_back(cell(errors.memory_mape, mean_cell(style_)));
    }
    table_.add_row(std::move(cells));
  }
  void add_rule() { table_.add_rule(); }
  std::string render() const { return table_.render(style_); }

 private:
  std::vector<Column> columns(std::string head) const {
    std::vector<Column> all = {{std::move(head), "", Align::left},
                               {"rows"},
                               {"MAPE", "%"},
                               {"median", "%"},
                               {"bias", "%"},
                               {"inside", "%"}};
    if (held_out_) {
      all.push_back({"held out", "%"});
      all.push_back({"median", "%"});
      all.push_back({"inside", "%"});
    }
    if (memory_) {
      all.push_back({"memory", "%"});
    }
    return all;
  }

  // Those that could be priced, and of how many.
  static std::string rows_of(const ErrorSummary& errors) {
    if (errors.priced == errors.rows) return count(errors.rows);
    return fmt::format("{} of {}", count(errors.priced), count(errors.rows));
  }

  bool held_out_;
  bool memory_;
  const Style& style_;
  Table table_;
};

std::string legend(const ValidationReport& report) {
  std::string text =
      "MAPE and median of |predicted / measured − 1| of the step time; bias is its signed mean; "
      "inside is the share of measured times within the 10–90 % interval";
  if (report.all.held_out_mape) {
    text += "; held out: predicted, and the interval drawn, without any run of the row's own file";
  }
  const auto unmeasured =
      std::ranges::count_if(report.rows, [](const ValidationRow& row) { return !row.measured; });
  if (unmeasured > 0) {
    text += fmt::format("; of {} of the rows no step time was measured", unmeasured);
  }
  return wrap(text + ".");
}

std::string files_table(const ValidationReport& report, const Style& style) {
  ErrorTable table("file", report, style);
  for (const FileSummary& file : report.files) {
    table.add(short_name(file.file), file);
  }
  table.add_rule();
  table.add(style.strong("all"), report.all);
  return table.render();
}

std::string slices_table(const std::string& head, const std::vector<SliceSummary>& slices,
                         const ValidationReport& report, const Style& style) {
  if (slices.size() < 2) {
    return "";  // already in the line `all`
  }
  ErrorTable table(head, report, style);
  for (const SliceSummary& slice : slices) {
    table.add(elide(slice.name, kNameWidth), slice);
  }
  return "\n" + table.render();
}

// Order of plans -----------------------------------------------------------------------------

std::string order_line(const ValidationReport& report) {
  int ranked = 0;
  int right = 0;
  double tau = 0;
  double worst = 0;
  double held_out_tau = 0;
  double held_out_worst = 0;
  for (const PlanGroup& group : report.groups) {
    worst = std::max(worst, group.regret);
    held_out_worst = std::max(held_out_worst, group.held_out_regret.value_or(0));
    if (!group.kendall_tau) continue;
    ++ranked;
    tau += *group.kendall_tau;
    held_out_tau += group.held_out_kendall_tau.value_or(0);
    right += *group.kendall_tau == 1 ? 1 : 0;
  }
  std::string text = fmt::format("Order of plans: {} groups of runs that differ only in their plan",
                                 report.groups.size());
  if (ranked > 0) {
    text += fmt::format(
        "; of {} that measurement can rank {} are in the right order, mean τ {:.2f}, worst regret "
        "{} %",
        ranked, right, tau / ranked, percent(worst));
    if (report.all.held_out_mape) {
      text += fmt::format("; held out: mean τ {:.2f}, worst regret {} %", held_out_tau / ranked,
                          percent(held_out_worst));
    }
  }
  return wrap(text + ".");
}

bool is_wrong(const PlanGroup& group) {
  return group.regret > 0 || (group.kendall_tau && *group.kendall_tau < 1);
}

std::string groups_text(const ValidationReport& report, ValidationDetail detail,
                        const Style& style) {
  if (report.groups.empty()) {
    return "";
  }
  std::vector<const PlanGroup*> shown;
  for (const PlanGroup& group : report.groups) {
    if (detail == ValidationDetail::every_row || is_wrong(group)) shown.push_back(&group);
  }
  std::string text = "\n" + order_line(report);
  if (shown.empty()) {
    return text;
  }
  std::ranges::stable_sort(
      shown, [](const PlanGroup* a, const PlanGroup* b) { return a->regret > b->regret; });
  if (detail == ValidationDetail::summary && shown.size() > kWorstGroups) {
    shown.resize(kWorstGroups);
  }
  Table table({{"in the wrong order, from", "", Align::left},
               {"plans"},
               {"Kendall's τ"},
               {"regret", "%"},
               {"software", "", Align::left}});
  for (const PlanGroup* group : shown) {
    table.add_row({elide(group->plans.front(), kNameWidth), count(std::ssize(group->plans)),
                   cell(group->kendall_tau, [](double tau) { return fmt::format("{:.2f}", tau); }),
                   percent(group->regret), group->one_release ? "one release" : "releases differ"});
  }
  return text + "\n" + table.render(style);
}

// Rows ---------------------------------------------------------------------------------------

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
  for (const ValidationRow& row : report.rows) {
    if (row.file != file) {
      continue;
    }
    table.add_row({elide(row.name, kNameWidth), cell(row.predicted, time_cell),
                   cell(row.measured, time_cell), cell(row.error, error_cell(style)),
                   cell(row.predicted_memory, memory_cell), cell(row.measured_memory, memory_cell),
                   cell(row.memory_error, error_cell(style)),
                   row.predicted ? (row.feasible ? "yes" : style.bad("no")) : "–"});
  }
  return "\n" + table.render(style);
}

std::string worst_rows(const ValidationReport& report, const Style& style) {
  std::vector<const ValidationRow*> rows;
  for (const ValidationRow& row : report.rows) {
    if (row.error) rows.push_back(&row);
  }
  if (rows.size() <= kWorstRows) {
    return "";
  }
  std::ranges::stable_sort(rows, [](const ValidationRow* a, const ValidationRow* b) {
    return std::abs(*a->error) > std::abs(*b->error);
  });
  rows.resize(kWorstRows);
  Table table({{"worst rows", "", Align::left},
               {"file", "", Align::left},
               {"predicted", "s"},
               {"measured", "s"},
               {"error", "%"},
               {"device", "", Align::left},
               {"parallel", "", Align::left}});
  for (const ValidationRow* row : rows) {
    table.add_row({elide(row->name, kNameWidth / 2), elide(short_name(row->file), kNameWidth / 2),
                   cell(row->predicted, time_cell), cell(row->measured, time_cell),
                   cell(row->error, error_cell(style)), elide(row->device, kNameWidth / 2),
                   row->parallelism});
  }
  return "\n" + table.render(style);
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

}  // namespace

std::string validation_text(const ValidationReport& report, ValidationDetail detail,
                            const Style& style) {
  std::string text = files_table(report, style) + legend(report);
  text += slices_table("device", report.by_device, report, style);
  text += slices_table("parameters", report.by_size, report, style);
  text += slices_table("parallelism", report.by_parallelism, report, style);
  text += groups_text(report, detail, style);
  if (detail == ValidationDetail::summary) {
    text += worst_rows(report, style);
  } else {
    for (const FileSummary& file : report.files) {
      text += rows_table(report, file.file, style);
    }
  }
  return text + notes(report);
}

}  // namespace trainyard
