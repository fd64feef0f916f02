#include "scenarios/rank_status.h"

#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

Json status_json(const RankStatus& status) {
  return {{"rank", status.rank},
          {"host", status.host},
          {"state", status.state},
          {"steps_done", status.steps_done},
          {"steps", status.steps},
          {"operation", status.operation},
          {"operations", status.operations},
          {"at", status.at},
          {"call", status.call},
          {"step_time_s", status.step_time.value()},
          {"loss", status.loss},
          {"peak_memory_bytes", status.peak_memory.value()}};
}

// A loss that is NaN is written as null.
double number_or_zero(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? 0 : value.get<double>();
}

RankStatus status_in(const Json& object) {
  RankStatus status;
  object.at("rank").get_to(status.rank);
  object.at("host").get_to(status.host);
  object.at("state").get_to(status.state);
  object.at("steps_done").get_to(status.steps_done);
  object.at("steps").get_to(status.steps);
  object.at("operation").get_to(status.operation);
  object.at("operations").get_to(status.operations);
  object.at("at").get_to(status.at);
  object.at("call").get_to(status.call);
  status.step_time = Seconds(number_or_zero(object, "step_time_s"));
  status.loss = number_or_zero(object, "loss");
  status.peak_memory = Bytes(number_or_zero(object, "peak_memory_bytes"));
  return status;
}

}  // namespace

std::string rank_status_line(const std::vector<RankStatus>& ranks) {
  Json list = Json::array();
  for (const RankStatus& status : ranks) list.push_back(status_json(status));
  return json_line(Json{{"ranks", std::move(list)}});
}

std::optional<std::vector<RankStatus>> read_rank_status(std::string_view line) {
  if (!line.starts_with("{\"ranks\":")) return std::nullopt;
  const auto json = parse_json(line);
  if (!json) return std::nullopt;
  std::vector<RankStatus> ranks;
  try {  // the library throws where a member is absent or of another type
    for (const Json& object : json->at("ranks")) ranks.push_back(status_in(object));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return ranks;
}

std::string progress_line(double fraction) { return Json{{"progress", fraction}}.dump(); }

std::optional<double> read_progress(std::string_view line) {
  if (!line.starts_with("{\"progress\":")) return std::nullopt;
  const auto json = parse_json(line);
  if (!json || !json->at("progress").is_number()) return std::nullopt;
  const double fraction = json->at("progress").get<double>();
  return fraction >= 0 && fraction <= 1 ? std::optional(fraction) : std::nullopt;
}

}  // namespace trainyard
