#include "scenarios/sweep/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/units.h"
#include "scenarios/json/json_document.h"
#include "scenarios/json/quantity.h"
#include "scenarios/sweep/results/row_json.h"
#include "scenarios/text/markup.h"
#include "scenarios/text/svg_scatter.h"

namespace trainyard {
namespace {

constexpr std::int64_t kPointsInChart = 4000;

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
body { font: 14px/1.45 sans-serif; margin: 2em; color: #222; background: #fff; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: 3px 9px; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th { cursor: pointer; background: #f4f4f4; position: sticky; top: 0; vertical-align: bottom; }
th small { display: block; font-weight: normal; color: #666; }
td.text, th.text { text-align: left; white-space: normal; }
.bad { color: #a33; } .faint { color: #777; }
pre { background: #f7f7f7; padding: 1em; overflow: auto; max-height: 40em; }
.charts svg { max-width: 48%; height: auto; }
</style>
)";

// Sorts rows by their cells' values, else by their text; a second click reverses the order.
constexpr std::string_view kScript = R"(<script>
document.querySelectorAll('table.sort').forEach(function (table) {
  table.querySelectorAll('th').forEach(function (head, column) {
    head.addEventListener('click', function () {
      var down = head.dataset.down === '1';
      head.dataset.down = down ? '0' : '1';
      var value = function (row) {
        var cell = row.cells[column];
        var given = cell.dataset.v;
        return given === undefined ? cell.textContent : given === '' ? Infinity : Number(given);
      };
      var rows = Array.from(table.tBodies[0].rows);
      rows.sort(function (a, b) {
        var x = value(a), y = value(b);
        var order = typeof x === 'number' && typeof y === 'number'
          ? (x === y ? 0 : x < y ? -1 : 1) : String(x).localeCompare(String(y));
        return down ? -order : order;
      });
      rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
    });
  });
});
</script>
)";

struct Head {
  std::string title, unit;
  bool text = false;
};

std::string heads(const std::vector<Head>& columns) {
  std::string html = "<table class=\"sort\"><thead><tr>";
  for (const Head& head : columns) {
    html += fmt::format("<th{}>{}<small>{}</small></th>", head.text ? " class=\"text\"" : "",
                        markup_text(head.title), markup_text(head.unit));
  }
  return html + "</tr></thead><tbody>\n";
}

constexpr std::string_view kTableEnd = "</tbody></table>\n";

std::string text_cell(std::string_view text) {
  return fmt::format("<td class=\"text\">{}</td>", markup_text(text));
}

// A number with four significant digits; empty if unknown.
std::string number_cell(double value) {
  if (std::isnan(value)) return "<td data-v=\"\"></td>";
  const bool whole = std::abs(value) >= 1000;
  return fmt::format("<td data-v=\"{}\">{}</td>", value,
                     whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value));
}

// A cell for a value that varies; quantities sort by size, whatever their units.
std::string value_cell(const Json* value) {
  if (value == nullptr) return "<td data-v=\"\" class=\"faint\">as is</td>";
  if (value->is_number()) return number_cell(value->get<double>());
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    const auto quantity = quantity_of_some_kind(text);
    return quantity ? fmt::format("<td data-v=\"{}\">{}</td>", *quantity, markup_text(text))
                    : text_cell(text);
  }
  return text_cell(json_line(*value));
}

// A cell for a baseline: its step time and how much faster the point is, or why there is none.
std::string baseline_cells(const std::optional<BaselineFigures>& baseline, const PointRow& row) {
  if (!baseline) return "<td data-v=\"\" class=\"faint\">none is legal</td><td data-v=\"\"></td>";
  if (!baseline->fits) {
    return fmt::format(
        "<td data-v=\"\" class=\"bad\" title=\"{}\">needs {:.0f} GiB</td>"
        "<td data-v=\"\"></td>",
        markup_text(baseline->plan), baseline->peak_memory / kGiB);
  }
  return fmt::format("<td data-v=\"{}\" title=\"{}\">{:.4g}</td>", baseline->step_time,
                     markup_text(baseline->plan), baseline->step_time) +
         number_cell(row.status == PointStatus::done
                         ? baseline->step_time / row.figure("step_time_s")
                         : std::nan(""));
}

// A column of the table of points: for all sweeps, or for one way of answering.
struct FigureColumn {
  FigureName name;
  Head head;
  double scale = 1;
  std::optional<Evaluation> only = std::nullopt;

  bool is_of(const Sweep& sweep) const { return !only || *only == sweep.document.evaluate; }
};
const std::array<FigureColumn, 10> kFigureColumns = {{
    {"devices", {"devices", ""}},
    {"step_time_s", {"step time", "s"}},
    {"tokens_per_second_per_device", {"tokens", "1/s per device"}},
    {"mfu", {"MFU", "%"}, 100},
    {"peak_memory_bytes", {"peak memory", "GiB"}, 1 / kGiB},
    {"cost_per_step_usd", {"cost of a step", "USD"}},
    {"energy_per_step_joule", {"energy of a step", "MJ"}, 1e-6},
    {"goodput", {"goodput", "%"}, 100, Evaluation::goodput},
    {"measured_step_time_s", {"measured", "step, s"}, 1, Evaluation::run},
    {"measured_peak_memory_bytes", {"measured", "memory, GiB"}, 1 / kGiB, Evaluation::run},
}};

std::string points_head(const Sweep& sweep) {
  std::vector<Head> columns = {{"point", ""}};
  for (const SweepColumn& column : sweep.columns) columns.push_back({column.name, ""});
  columns.push_back({"plan", "", true});
  columns.push_back({"answer", "", true});
  for (const FigureColumn& figure : kFigureColumns) {
    if (figure.is_of(sweep)) columns.push_back(figure.head);
  }
  columns.push_back({"plain DDP", "step, s"});
  columns.push_back({"speed-up", "over DDP"});
  columns.push_back({"rule of thumb", "step, s"});
  columns.push_back({"speed-up", "over the rule"});
  return heads(columns);
}

std::string point_line(const Sweep& sweep, const ReportedPoint& point) {
  const PointRow& row = point.row;
  const auto own = parse_json(row.overrides);
  std::string html = "<tr>" + number_cell(static_cast<double>(row.point));
  for (const SweepColumn& column : sweep.columns) {
    const bool has = own && own->contains(column.name);
    html += value_cell(has ? &own->at(column.name) : nullptr);
  }
  html += text_cell(point.plan);
  const std::string_view status = name_of(row.status);
  html +=
      text_cell(row.note.empty() ? std::string(status) : fmt::format("{}: {}", status, row.note));
  for (const FigureColumn& figure : kFigureColumns) {
    if (figure.is_of(sweep)) html += number_cell(row.figure(figure.name) * figure.scale);
  }
  return html + baseline_cells(point.plain, row) + baseline_cells(point.rule, row) + "</tr>\n";
}

std::string matrix(const std::map<std::string, StrategyRecord>& strategies) {
  std::string html =
      "<h2>Strategies: memory, speed, scale</h2>\n<p>Every point by the ways of parallelism that "
      "its plan uses. TP tensor, CP context, PP pipeline, EP expert, DP data parallel; ZeRO: what "
      "is sharded over the data-parallel ranks.</p>\n" +
      heads({{"strategy", "", true},
             {"fit", "points"},
             {"do not fit", "points"},
             {"memory, least", "GiB"},
             {"memory, most", "GiB"},
             {"speed, best", "tokens/s per device"},
             {"MFU, best", "%"},
             {"scale, least", "devices"},
             {"scale, most", "devices"},
             {"throughput, best", "tokens/s"}});
  for (const auto& [name, record] : strategies) {
    const bool any = record.done > 0;
    const auto known = [any](double value) { return number_cell(any ? value : std::nan("")); };
    html += "<tr>" + text_cell(name) + number_cell(static_cast<double>(record.done)) +
            number_cell(static_cast<double>(record.too_large)) + known(record.least_memory / kGiB) +
            known(record.most_memory / kGiB) + known(record.best_speed) +
            known(100 * record.best_mfu) + known(record.least_devices) +
            known(record.most_devices) + known(record.best_total) + "</tr>\n";
  }
  return html + std::string(kTableEnd);
}

// The points that the charts show, by strategy: a part of all points, evenly chosen.
class Charts {
 public:
  explicit Charts(std::int64_t rows) : every_(std::max<std::int64_t>(1, rows / kPointsInChart)) {}

  void add(const ReportedPoint& point) {
    if (point.row.status != PointStatus::done || seen_++ % every_ != 0) return;
    const PointRow& row = point.row;
    speed_[point.strategy].push_back({row.figure("devices"), row.figure("tokens_per_second")});
    memory_[point.strategy].push_back(
        {row.figure("peak_memory_bytes") / kGiB, row.figure("tokens_per_second_per_device")});
  }

  std::string html() const {
    return "<h2>Charts</h2>\n<div class=\"charts\">\n" +
           svg_of({.title = "Throughput by size of the cluster",
                   .x = {.title = "devices", .logarithmic = true},
                   .y = {.title = "tokens/s", .logarithmic = true},
                   .series = series_of(speed_)}) +
           svg_of({.title = "Speed of a device by its memory",
                   .x = {.title = "peak memory, GiB"},
                   .y = {.title = "tokens/s of a device"},
                   .series = series_of(memory_)}) +
           "</div>\n";
  }

 private:
  using ByStrategy = std::map<std::string, std::vector<ScatterPoint>>;
  static std::vector<ScatterSeries> series_of(const ByStrategy& points) {
    std::vector<ScatterSeries> series;
    for (const auto& [name, of] : points) series.push_back({name, of});
    return series;
  }

  std::int64_t every_, seen_ = 0;
  ByStrategy speed_, memory_;
};

std::string counts_line(const StatusCounts& counts, const SweepReport& report) {
  return fmt::format(
      "<p>{} points: {} fit, {} do not fit, {} are refused; the others are left out by conditions "
      "or not answered yet.</p>\n",
      report.sweep().points, counts.of(PointStatus::done), counts.of(PointStatus::too_large),
      counts.of(PointStatus::refused));
}

Expected<std::string> assumptions(SweepReport& report) {
  std::string html = "<h2>What was assumed</h2>\n<ul>\n";
  for (const std::string& line : report.sweep().scenario.assumptions) {
    html += fmt::format("<li>{}</li>\n", markup_text(line));
  }
  html +=
      "<li>Plain DDP: every device holds the whole model, micro-batch 1, nothing sharded. Rule of "
      "thumb: tensor parallelism inside the node, pipeline stages until it fits, data parallelism "
      "with the rest.</li>\n</ul>\n";
  html += fmt::format(
      "<details><summary>The sweep with its scenario</summary><pre>{}</pre></details>\n",
      markup_lines(report.results().said("document")));
  const auto inputs = report.results().inputs();
  if (!inputs) return tl::unexpected(inputs.error());
  html += "<h2>Inputs</h2>\n" + heads({{"input", "", true}, {"SHA-256", "", true}});
  for (const SweepInput& input : *inputs) {
    html += "<tr>" + text_cell(input.name) + text_cell(input.hash) + "</tr>\n";
  }
  html += kTableEnd;
  const auto sessions = report.results().sessions();
  if (!sessions) return tl::unexpected(sessions.error());
  html += "<h2>Computed by</h2>\n" + heads({{"version", "", true},
                                            {"host", "", true},
                                            {"started", "UTC", true},
                                            {"workers", ""},
                                            {"points", ""}});
  for (const SessionRecord& session : *sessions) {
    html += "<tr>" + text_cell(session.version) + text_cell(session.host) +
            text_cell(session.started) + number_cell(static_cast<double>(session.workers)) +
            number_cell(static_cast<double>(session.points)) + "</tr>\n";
  }
  return html + std::string(kTableEnd);
}

Expected<void> write_points(SweepReport& report, OutputFile& out) {
  out.write(
      fmt::format("<h2>Points</h2>\n<p>By {}, the best first; at most {}. A click on a head "
                  "sorts; baselines show their plan under the pointer.</p>\n",
                  report.order().label, kPointsOnPage));
  out.write(points_head(report.sweep()));
  std::int64_t left = kPointsOnPage;
  for (const PointStatus status :
       {PointStatus::done, PointStatus::too_large, PointStatus::refused}) {
    auto written = report.results().each(
        {.status = status, .order = report.order().sql, .limit = left}, [&](const PointRow& row) {
          out.write(point_line(report.sweep(), report.describe(row)));
          --left;
          return true;
        });
    if (!written) return written;
  }
  out.write(kTableEnd);
  return {};
}

}  // namespace

Expected<void> write_report_html(SweepReport& report, OutputFile& out) {
  const auto counts = report.results().counts();
  if (!counts) return tl::unexpected(counts.error());
  Charts charts(counts->of(PointStatus::done));
  const auto strategies =
      report.strategies([&charts](const ReportedPoint& point) { charts.add(point); });
  if (!strategies) return tl::unexpected(strategies.error());
  const std::string name = markup_text(report.sweep().name);
  out.write(kHead);
  out.write(fmt::format("<title>{0}</title></head>\n<body>\n<h1>{0}</h1>\n", name));
  out.write(counts_line(*counts, report));
  out.write(matrix(*strategies));
  out.write(charts.html());
  if (auto written = write_points(report, out); !written) return written;
  const auto assumed = assumptions(report);
  if (!assumed) return tl::unexpected(assumed.error());
  out.write(*assumed);
  out.write(kScript);
  out.write("</body></html>\n");
  return {};
}

}  // namespace trainyard
