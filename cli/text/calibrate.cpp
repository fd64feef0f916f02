#include "cli/text/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/text/csv.h"
#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
#include "model/calibration/fit_collectives.h"
#include "model/calibration/fit_gemm.h"
#include "model/cost/kernels/attention.h"
#include "model/median.h"

namespace trainyard {
namespace {

struct FamilyLine {
  std::string name;
  std::size_t points = 0;
  int runs = 0, outliers = 0;
  std::vector<double> uncertainties, errors;
};

void add(const ScoredPoint& scored, FamilyLine& line) {
  const Timing& timing = scored.point.timing;
  ++line.points;
  line.runs += timing.runs;
  line.outliers += timing.outliers;
  line.uncertainties.push_back(timing.uncertainty());
  if (scored.predicted > 0) {
    line.errors.push_back(std::abs(scored.predicted / timing.median.value() - 1));
  }
}

std::vector<FamilyLine> lines_of(std::span<const ScoredPoint> points) {
  std::vector<FamilyLine> lines;
  for (const ScoredPoint& scored : points) {
    auto line = std::ranges::find(lines, scored.point.family, &FamilyLine::name);
    if (line == lines.end()) {
      line = lines.insert(lines.end(), FamilyLine{.name = scored.point.family});
    }
    add(scored, *line);
  }
  return lines;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::string_view operation_name(CollectiveOperation operation) {
  switch (operation) {
    case CollectiveOperation::all_reduce:
      return "all-reduce";
    case CollectiveOperation::all_gather:
      return "all-gather";
    case CollectiveOperation::reduce_scatter:
      return "reduce-scatter";
    case CollectiveOperation::all_to_all:
      return "all-to-all";
    case CollectiveOperation::broadcast:
      return "broadcast";
    case CollectiveOperation::send:
      return "send";
  }
  return "";
}

// Single messages are priced by the node's links, if at all.
ScoredPoint point_of(const TimedCollective& of, std::string_view among, Seconds predicted) {
  const bool single = of.sample.operation == CollectiveOperation::send;
  return {{fmt::format("{}, {}", operation_name(of.sample.operation), among),
           fmt::format("{:.0f} bytes", of.sample.bytes.value()), of.timing},
          single ? 0 : predicted.value()};
}

// Adds predictions to the points of one family. `samples` are of the same kind and in the same
// order.
template <typename Sample, typename Predict>
void predict(std::vector<ScoredPoint>& points, std::string_view family, std::string_view what,
             const std::vector<Sample>& samples, const Predict& prediction) {
  std::size_t next = 0;
  for (ScoredPoint& scored : points) {
    const MeasuredPoint& point = scored.point;
    if (point.family != family || !point.what.starts_with(what)) continue;
    if (next == samples.size()) return;
    scored.predicted = prediction(samples[next++]).value();
  }
}

}  // namespace

std::vector<ScoredPoint> scored_points(const Device& fitted, const HostSamples& host,
                                       std::span<const TimedCollective> collectives) {
  Device device = fitted;
  device.rates.sustained_clock = 1;  // the points were measured in bursts
  std::vector<ScoredPoint> points;
  for (const auto* list : {&host.points, &host.steps.points}) {
    for (const MeasuredPoint& point : *list) points.push_back({point});
  }
  const auto gemm = [&](const GemmSample& sample) { return gemm_sample_time(device, sample); };
  const auto attention = [&](const AttentionSample& sample) {
    return attention_prefill_time(device, sample.shape);
  };
  predict(points, "GEMM", "", host.gemm, gemm);
  predict(points, "attention", "forward", host.attention, attention);
  predict(points, "GEMM in a step", "", host.steps.gemm, gemm);
  predict(points, "attention in a step", "forward", host.steps.attention, attention);
  for (const TimedCollective& of : collectives) {
    points.push_back(point_of(of, fmt::format("{} ranks", of.sample.gpus),
                              collective_sample_time(device, of.sample)));
  }
  return points;
}

void add_points_across(const Cluster& host, std::span<const TimedCollective> collectives,
                       std::vector<ScoredPoint>& points) {
  const FabricProblem problem{host, ""};
  for (const TimedCollective& of : collectives) {
    const FabricSample across = fabric_sample(of.sample, host);
    points.push_back(
        point_of(of, fmt::format("{} hosts", across.nodes), fabric_sample_time(problem, across)));
  }
}

std::string calibration_table(std::span<const ScoredPoint> points, const Style& style) {
  Table table({{"operations", "", Align::left},
               {"points", ""},
               {"runs", ""},
               {"outliers", ""},
               {"median 95 %", "± %"},
               {"worst 95 %", "± %"},
               {"fit's error", "%"}});
  for (const FamilyLine& line : lines_of(points)) {
    table.add_row({line.name, fmt::format("{}", line.points), fmt::format("{}", line.runs),
                   fmt::format("{}", line.outliers), percent(median(line.uncertainties)),
                   percent(std::ranges::max(line.uncertainties)),
                   line.errors.empty() ? "" : percent(mean(line.errors))});
  }
  return table.render(style);
}

std::string calibration_csv(std::span<const ScoredPoint> points) {
  std::vector<CsvRow> rows;
  rows.reserve(points.size());
  for (const auto& [point, predicted] : points) {
    const Timing& timing = point.timing;
    const double median = timing.median.value(), half = 1.96 * timing.deviation.value();
    rows.push_back({{"operations", point.family},
                    {"what", point.what},
                    {"median_s", csv_number(median)},
                    {"low_s", csv_number(median - half)},
                    {"high_s", csv_number(median + half)},
                    {"runs", fmt::format("{}", timing.runs)},
                    {"outliers", fmt::format("{}", timing.outliers)},
                    {"fitted_s", predicted > 0 ? csv_number(predicted) : ""}});
  }
  return csv_text(rows);
}

}  // namespace trainyard
