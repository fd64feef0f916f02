#include "cli/text/csv.h"

#include <fmt/format.h>

#include "cli/text/plan.h"
#include "model/cost/breakdown.h"

namespace trainyard {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) {
    return text;
  }
  std::string result = "\"";
  for (const char c : text) {
    result.append(c == '"' ? 2 : 1, c);
  }
  result += '"';
  return result;
}

}  // namespace

std::string csv_number(double value) { return fmt::format("{}", value); }

std::string csv_text(const std::vector<CsvRow>& rows) {
  std::string text;
  const auto line = [&text](const CsvRow& row, auto&& cell) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? "" : ",";
      text += quoted(cell(row[i]));
    }
    text += '\n';
  };
  if (!rows.empty()) {
    line(rows.front(), [](const auto& entry) { return entry.first; });
  }
  for (const CsvRow& row : rows) {
    line(row, [](const auto& entry) { return entry.second; });
  }
  return text;
}

CsvRow csv_row(const std::string& name, const Candidate& candidate) {
  const Estimate& e = candidate.estimate;
  CsvRow row = {{"name", name}};
  for (auto& field : plan_fields(candidate.plan)) {
    row.push_back(std::move(field));
  }
  const auto add = [&row](std::string key, double value) {
    row.emplace_back(std::move(key), csv_number(value));
  };
  add("step_time_s", e.step_time.value());
  add("step_time_low_s", e.step_time_low.value());
  add("step_time_high_s", e.step_time_high.value());
  add("tokens_per_second", e.tokens_per_second);
  add("tokens_per_second_per_device", e.tokens_per_second / candidate.plan.devices());
  add("model_tflops_per_device", e.model_flops_per_device.value() * 1e-12);
  add("mfu", e.mfu);
  add("mfu_bf16", e.mfu_bf16);
  add("hfu", e.hfu);
  row.emplace_back("feasible", e.feasible ? "true" : "false");
  add("peak_allocated_bytes", e.peak_allocated.value());
  add("peak_reserved_bytes", e.peak_reserved.value());
  add("peak_memory_bytes", e.peak_memory.value());
  add("peak_memory_low_bytes", e.peak_memory_low.value());
  add("peak_memory_high_bytes", e.peak_memory_high.value());
  add("host_memory_bytes", e.host_memory.value());
  for (const BreakdownPart& part : breakdown_parts()) {
    add(fmt::format("{}_s", part.key), (e.breakdown.*part.time).value());
  }
  row.emplace_back("cost_per_step_usd", csv_number(e.cost_per_step));
  row.emplace_back("energy_per_step_joule", csv_number(e.energy_per_step));
  return row;
}

}  // namespace trainyard
