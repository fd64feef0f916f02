#include "cli/text/validation_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "cli/text/layout/columns.h"
#include "scenarios/text/svg_scatter.h"

namespace trainyard {
namespace {

constexpr double kBand = 0.1;

ScatterSeries series_of(const ValidationReport& report, const FileSummary& file) {
  ScatterSeries series;
  for (const ValidationRow& row : report.rows) {
    if (row.file == file.file && row.error) {
      series.points.push_back({row.measured->value(), row.predicted->value()});
    }
  }
  const std::string name = std::filesystem::path(file.file).stem().string();
  series.name = file.mape ? fmt::format("{}: {} %", name, percent(*file.mape)) : name;
  return series;
}

// Both axes show the same range, so that equality is the diagonal.
void show_alike(ScatterChart& chart) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const ScatterSeries& series : chart.series) {
    for (const ScatterPoint& point : series.points) {
      least = std::min({least, point.x, point.y});
      most = std::max({most, point.x, point.y});
    }
  }
  constexpr double kMargin = 1.2;
  if (most <= 0) return;
  chart.x.least = chart.y.least = least / kMargin;
  chart.x.most = chart.y.most = most * kMargin;
}

}  // namespace

std::string validation_plot(const ValidationReport& report) {
  ScatterChart chart{.title = "Step time, predicted against measured; lines at ±10 %",
                     .x = {.title = "measured, s", .logarithmic = true},
                     .y = {.title = "predicted, s", .logarithmic = true},
                     .levels = {1 - kBand, 1, 1 + kBand},
                     .diagonal = true};
  for (const FileSummary& file : report.files) {
    chart.series.push_back(series_of(report, file));
  }
  show_alike(chart);
  return svg_of(chart);
}

}  // namespace trainyard
