#include "scenarios/write/validation.h"

#include <type_traits>
#include <variant>

#include "scenarios/json/json_document.h"
#include "scenarios/write/result_json.h"

namespace trainyard {
namespace {

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

// Adds the errors of `summary` to `json`, and those with held-out sources if there are any.
Json with_errors(Json json, const ErrorSummary& summary) {
  json["rows"] = summary.rows;
  json["priced"] = summary.priced;
  json["mape"] = number_or_null(summary.mape);
  json["median"] = number_or_null(summary.median);
  json["bias"] = number_or_null(summary.bias);
  json["memory_mape"] = number_or_null(summary.memory_mape);
  json["coverage"] = number_or_null(summary.coverage);
  if (summary.held_out_mape) {
    json["held_out_mape"] = number_or_null(summary.held_out_mape);
    json["held_out_median"] = number_or_null(summary.held_out_median);
    json["held_out_coverage"] = number_or_null(summary.held_out_coverage);
  }
  return json;
}

Json file_json(const FileSummary& file) { return with_errors({{"file", file.file}}, file); }
Json slice_json(const SliceSummary& slice) { return with_errors({{"name", slice.name}}, slice); }

Json json_of(const ValidationField& field) {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<decltype(value), const std::monostate&>) {
          return Json(nullptr);
        } else {
          return Json(value);
        }
      },
      field.value);
}

Json row_json(const ValidationRow& row) {
  Json json = Json::object();
  for (const ValidationField& field : fields_of(row)) {
    if (!field.of_held_out || row.held_out) json[std::string(field.key)] = json_of(field);
  }
  return json;
}

Json group_json(const PlanGroup& group) {
  Json json = {{"plans", group.plans},
               {"kendall_tau", number_or_null(group.kendall_tau)},
               {"regret", group.regret},
               {"one_release", group.one_release}};
  if (group.held_out_regret) {
    json["held_out_kendall_tau"] = number_or_null(group.held_out_kendall_tau);
    json["held_out_regret"] = *group.held_out_regret;
  }
  return json;
}

// The intervals by their keys in a stack document.
Json interval_json(const IntervalFit& fit) {
  const Stack stack = with_interval({}, fit);
  const StackEvidence& evidence = stack.evidence;
  return {{"stack", fit.stack},
          {"interval_low", stack.interval_low},
          {"interval_high", stack.interval_high},
          {"interval_moe", stack.interval_moe},
          {"memory_interval_low", stack.memory_interval_low},
          {"memory_interval_high", stack.memory_interval_high},
          {"evidence",
           {{"runs", evidence.runs},
            {"devices", evidence.devices},
            {"sequence_length", evidence.sequence_length},
            {"ampere", evidence.ampere},
            {"hopper", evidence.hopper},
            {"blackwell", evidence.blackwell},
            {"tensor_parallel", evidence.tensor_parallel},
            {"pipeline_parallel", evidence.pipeline_parallel},
            {"context_parallel", evidence.context_parallel}}}};
}

template <typename Entry>
Json list_json(const std::vector<Entry>& entries, Json (*one)(const Entry&)) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(one(entry));
  return list;
}

}  // namespace

std::string validation_json(const ValidationReport& report) {
  Json json = {{"trainyard", "validation/1"},
               {"files", list_json(report.files, file_json)},
               {"rows", list_json(report.rows, row_json)},
               {"groups", list_json(report.groups, group_json)},
               {"by_device", list_json(report.by_device, slice_json)},
               {"by_size", list_json(report.by_size, slice_json)},
               {"by_parallelism", list_json(report.by_parallelism, slice_json)}};
  Json all = with_errors(Json::object(), report.all);
  all.erase("rows");  // the list above
  all.erase("priced");
  json.update(all);
  if (!report.intervals.empty()) json["intervals"] = list_json(report.intervals, interval_json);
  return text_of(json);
}

}  // namespace trainyard
