#include "scenarios/planner_keys.h"

#include <algorithm>
#include <utility>

#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

Json json_or_text(std::string_view text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

const FieldSpec* plan_field(const std::string& key) {
  const std::vector<FieldSpec>& fields = plan_section().spec().fields;
  const auto found = std::ranges::find(fields, key, &FieldSpec::key);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> planner_keys_of_plan() {
  std::vector<std::string> keys;
  for (const FieldSpec& field : planner_section().spec().fields) {
    if (plan_field(field.key) != nullptr) keys.push_back(field.key);
  }
  return keys;
}

Expected<PlannerKeys> with_planner_key(const PlannerKeys& keys, const std::string& key,
                                       std::string_view value, const std::string& name) {
  Json section = planner_section().write(keys);
  section[key] = json_or_text(value);
  const Document document{.name = name, .file = {}};
  const Place place{&document, {}};
  PlannerKeys changed;
  return check(planner_section().spec(), section, place)
      .and_then([&] { return planner_section().read(section, changed, place); })
      .map([&] { return std::move(changed); });
}

}  // namespace trainyard
