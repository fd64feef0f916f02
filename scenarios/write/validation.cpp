#include "scenarios/json_document.h"
#include "scenarios/output.h"
#include "scenarios/write/result_json.h"

namespace trainyard {
namespace {

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}
Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// `json` with the errors of `summary`; those of left-out sources only where they were left out.
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

Json row_json(const ValidationRow& row) {
  Json json = {{"name", row.name},
               {"file", row.file},
               {"source", text_or_null(row.source)},
               {"release", text_or_null(row.release)},
               {"device", row.device},
               {"devices", row.devices},
               {"stack", row.stack},
               {"experts", row.experts},
               {"size", row.size},
               {"parallelism", row.parallelism},
               {"predicted_step_time_s", number_or_null(row.predicted)},
               {"step_time_low_s", number_or_null(row.low)},
               {"step_time_high_s", number_or_null(row.high)},
               {"measured_step_time_s", number_or_null(row.measured)},
               {"error", number_or_null(row.error)},
               {"predicted_peak_memory_bytes", number_or_null(row.predicted_memory)},
               {"measured_peak_memory_bytes", number_or_null(row.measured_memory)},
               {"memory_error", number_or_null(row.memory_error)},
               {"feasible", row.predicted ? Json(row.feasible) : Json(nullptr)},
               {"note", text_or_null(row.note)}};
  if (row.held_out) {
    json["held_out_step_time_s"] = row.held_out->predicted.value();
    json["held_out_step_time_low_s"] = row.held_out->low.value();
    json["held_out_step_time_high_s"] = row.held_out->high.value();
    json["held_out_error"] = row.held_out->error;
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

// As a stack document spells it.
Json interval_json(const IntervalFit& fit) {
  const Stack stack = with_interval({}, fit);
  const StackEvidence& evidence = stack.evidence;
  return {{"stack", fit.stack},
          {"interval_low", stack.interval_low},
          {"interval_high", stack.interval_high},
          {"interval_moe", stack.interval_moe},
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
