#include "scenarios/json/json_document.h"
#include "scenarios/kernels/report.h"

namespace trainyard {
namespace {

void put_errors(const KernelErrors& errors, Json& json) {
  json["rows"] = errors.rows;
  json["mape"] = errors.mape;
  json["median"] = errors.median;
  json["p90"] = errors.p90;
  json["baseline_mape"] = errors.baseline_mape ? Json(*errors.baseline_mape) : Json(nullptr);
}

Json name_or_null(const std::string& name) { return name.empty() ? Json(nullptr) : Json(name); }

Json report_json(const KernelFileReport& report) {
  Json json = {{"file", report.file}, {"family", report.family}};
  put_errors(report.errors, json);
  json["regions"] = Json::array();
  for (const KernelRegion& region : report.regions) {
    Json entry = {{"group", name_or_null(region.group)}, {"region", name_or_null(region.region)}};
    put_errors(region.errors, entry);
    json["regions"].push_back(std::move(entry));
  }
  return json;
}

Json reports_json(const std::vector<KernelFileReport>& reports) {
  Json list = Json::array();
  for (const KernelFileReport& report : reports) list.push_back(report_json(report));
  return list;
}

}  // namespace

std::string kernel_check_json(std::string_view device, const std::vector<KernelFileReport>& files) {
  return text_of({{"trainyard", "fit-check/1"},
                  {"device", std::string(device)},
                  {"files", reports_json(files)}});
}

std::string kernel_fit_json(std::string_view device, const KernelFit& fit) {
  Json provenance = Json::object();
  for (const auto& [pointer, text] : fit.provenance) provenance[pointer] = text;
  return text_of({{"trainyard", "fit/1"},
                  {"device", std::string(device)},
                  {"files", reports_json(fit.files)},
                  {"cross_validation", reports_json(fit.cross_validated)},
                  {"provenance", provenance}});
}

}  // namespace trainyard
