#include "scenarios/sweep/report/json.h"

#include "scenarios/json/json_document.h"
#include "scenarios/sweep/results/row_json.h"

namespace trainyard {
namespace {

Json baseline_value(const std::optional<BaselineFigures>& baseline) {
  if (!baseline) return nullptr;
  return {{"plan", baseline->plan},
          {"feasible", baseline->fits},
          {"step_time_s", baseline->step_time},
          {"peak_memory_bytes", baseline->peak_memory}};
}

Json point_value(const ReportedPoint& point) {
  Json value = row_value(point.row);
  value["strategy"] = point.strategy;
  value["degrees"] = point.plan;
  value["baselines"] = {{"plain_ddp", baseline_value(point.plain)},
                        {"rule_of_thumb", baseline_value(point.rule)}};
  return value;
}

}  // namespace

Expected<void> write_report_json(SweepReport& report, OutputFile& out) {
  const auto inputs = report.results().inputs();
  if (!inputs) return tl::unexpected(inputs.error());
  Json hashes = Json::object();
  for (const SweepInput& input : *inputs) hashes[input.name] = input.hash;
  const auto document = parse_json(report.results().said("document"));
  if (!document) return tl::unexpected(document.error());
  out.write("{\"trainyard\":\"report/1\",\n\"name\":" + json_line(report.sweep().name));
  out.write(",\n\"assumptions\":" + json_line(report.sweep().scenario.assumptions));
  out.write(",\n\"document\":" + json_line(*document));
  out.write(",\n\"inputs\":" + json_line(hashes) + ",\n\"points\":[\n");
  bool first = true;
  auto read = report.results().each({}, [&](const PointRow& row) {
    out.write((first ? "" : ",\n") + json_line(point_value(report.describe(row))));
    first = false;
    return true;
  });
  out.write("\n]}\n");
  return read;
}

}  // namespace trainyard
