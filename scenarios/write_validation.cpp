#include "scenarios/json_document.h"
#include "scenarios/output.h"

namespace trainyard {
namespace {

template <typename Q>
Json number_or_null(const std::optional<Q>& quantity) {
  return quantity ? Json(quantity->value()) : Json(nullptr);
}
Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json file_json(const FileSummary& file) {
  return {{"file", file.file},
          {"rows", file.rows},
          {"priced", file.priced},
          {"mape", number_or_null(file.mape)},
          {"median", number_or_null(file.median)}};
}

Json row_json(const ValidationRow& row) {
  return {{"name", row.name},
          {"file", row.file},
          {"predicted_step_time_s", number_or_null(row.predicted)},
          {"step_time_low_s", number_or_null(row.low)},
          {"step_time_high_s", number_or_null(row.high)},
          {"measured_step_time_s", number_or_null(row.measured)},
          {"error", number_or_null(row.error)},
          {"predicted_peak_memory_bytes", number_or_null(row.predicted_memory)},
          {"measured_peak_memory_bytes", number_or_null(row.measured_memory)},
          {"memory_error", number_or_null(row.memory_error)},
          {"feasible", row.predicted ? Json(row.feasible) : Json(nullptr)},
          {"note", row.note.empty() ? Json(nullptr) : Json(row.note)}};
}

Json group_json(const PlanGroup& group) {
  return {{"plans", group.plans},
          {"kendall_tau", number_or_null(group.kendall_tau)},
          {"regret", group.regret}};
}

template <typename Entry>
Json list_json(const std::vector<Entry>& entries, Json (*one)(const Entry&)) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(one(entry));
  return list;
}

}  // namespace

std::string validation_json(const ValidationReport& report) {
  const Json json = {{"trainyard", "validation/1"},
                     {"files", list_json(report.files, file_json)},
                     {"rows", list_json(report.rows, row_json)},
                     {"groups", list_json(report.groups, group_json)},
                     {"mape", number_or_null(report.mape)},
                     {"median", number_or_null(report.median)},
                     {"memory_mape", number_or_null(report.memory_mape)}};
  return text_of(json);
}

}  // namespace trainyard
