#include "scenarios/sweep/sweep_draft.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "scenarios/fields/documents.h"
#include "scenarios/form.h"
#include "scenarios/scenario_text.h"
#include "scenarios/sweep/point_reader.h"

namespace trainyard {
namespace {

constexpr std::string_view kTo = "..";
constexpr std::size_t kDeepestKey = 4;  // steps: cluster.node.device.memory

Expected<Json> typed_json(std::string_view typed) {
  return parse_json(json_of_typed({.editor = FormEditor::json}, typed));
}

// The typed values: a list in brackets, JSON values with commas between them, or text with commas.
Expected<Json> listed_values(const std::string& typed) {
  if (auto list = parse_json(typed); list && list->is_array()) return list;
  if (auto list = parse_json("[" + typed + "]")) return list;
  auto list = typed_json(typed);
  return list && !list->is_array() ? Json::array({*std::move(list)}) : list;
}

Expected<Json> axis_json(const DraftAxis& axis) {
  Json json = {{"key", axis.key}};
  if (!is_range(axis.values)) {
    auto values = listed_values(axis.values);
    if (!values) return failure(axis.key, values.error().message);
    json["values"] = *std::move(values);
    return json;
  }
  const std::size_t to = axis.values.find(kTo);
  const std::array<std::pair<const char*, std::string>, 2> ends = {
      {{"from", axis.values.substr(0, to)}, {"to", axis.values.substr(to + kTo.size())}}};
  for (const auto& [name, typed] : ends) {
    auto end = typed_json(typed);
    if (!end) return failure(axis.key, end.error().message);
    json[name] = *std::move(end);
  }
  if (axis.steps > 0) json["steps"] = axis.steps;
  if (axis.scale == Scale::geometric) json["scale"] = "geometric";
  return json;
}

// Axes that vary together become one entry.
Expected<Json> vary_json(const std::vector<DraftAxis>& axes) {
  Json vary = Json::array();
  for (const DraftAxis& axis : axes) {
    auto json = axis_json(axis);
    if (!json) return json;
    if (!axis.with_previous || vary.empty()) {
      vary.push_back(*std::move(json));
      continue;
    }
    Json& before = vary.back();
    if (!before.contains("zip")) before = Json{{"zip", Json::array({before})}};
    before["zip"].push_back(*std::move(json));
  }
  return vary;
}

std::string typed_value(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_line(value);
}

Expected<DraftAxis> typed_axis(const AxisDocument& axis) {
  DraftAxis typed{.key = axis.key, .steps = axis.steps, .scale = axis.scale};
  if (!axis.from.is_null()) {
    typed.values = typed_value(axis.from) + " .. " + typed_value(axis.to);
    return typed;
  }
  const Json list = Json(axis.values);
  typed.values = json_line(list);
  if (is_range(typed.values)) {
    return failure(axis.key, "found two dots in a value; allowed in a window: values without");
  }
  // A single value that is itself a list keeps the outer brackets, which would otherwise be taken
  // for its own.
  if (list.size() == 1 && list.front().is_array()) return typed;
  typed.values.clear();
  for (const Json& value : list) {
    typed.values += (typed.values.empty() ? "" : ", ") + json_line(value);
  }
  return typed;
}

Expected<std::vector<DraftAxis>> typed_axes(const std::vector<AxisDocument>& vary) {
  std::vector<DraftAxis> axes;
  for (const AxisDocument& entry : vary) {
    const auto together = entry.zip.empty() ? std::span(&entry, 1) : std::span(entry.zip);
    for (const AxisDocument& axis : together) {
      auto typed = typed_axis(axis);
      if (!typed) return tl::unexpected(typed.error());
      typed->with_previous = &axis != &together.front();
      axes.push_back(*std::move(typed));
    }
  }
  return axes;
}

std::string joined_conditions(const std::vector<std::string>& where) {
  if (where.size() == 1) return where.front();
  std::string all;
  for (const std::string& condition : where) {
    all += (all.empty() ? "(" : " and (") + condition + ")";
  }
  return all;
}

// Fails where the document has something that a draft cannot express.
Expected<void> check_is_drafted(const SweepDocument& sweep) {
  const auto refused = [](const char* where, const char* found, const char* allowed) {
    return failure(where, std::string("found ") + found + "; allowed in a window: " + allowed);
  };
  if (!sweep.overrides.empty()) return refused("/overrides", "a CSV file", "vary");
  if (sweep.evaluate == Evaluation::run) return refused("/evaluate", "run", "what needs no device");
  if (sweep.objective != Objective::step_time) {
    return refused("/objective", "another objective", "step-time");
  }
  if (sweep.samples > kMostDraftedSamples)
    return refused("/samples", "more than a form has", "at most 1000000");
  if (sweep.seed > kMostDraftedSeed)
    return refused("/seed", "more than a form has", "at most 2147483647");
  return {};
}

class KeyList {
 public:
  // Adds the keys of a section and of the sections inside it.
  void add(const SectionSpec& section, const std::string& prefix, std::size_t depth) {
    if (section.name.ends_with("_sources")) return;
    for (const FieldSpec& field : section.fields) {
      const bool describes =
          field.key == "name" || field.key == "source" || field.key == "question";
      const bool is_ours = depth > 1 || (is_read_by_point(field.key) && field.key != "measured");
      if (!describes && is_ours) add_field(field, prefix + field.key, depth);
    }
  }

  std::vector<SweepKey> keys;

 private:
  void add_field(const FieldSpec& field, const std::string& name, std::size_t depth) {
    const auto* any = std::get_if<AnyShape>(&field.shape.form);
    const bool is_object = std::holds_alternative<ObjectShape>(field.shape.form);
    if (!is_object && seen_.insert(name).second) {
      keys.push_back({name, field.doc, allowed(field.shape)});
    }
    if (depth == kDeepestKey) return;
    if (is_object) add_object(field.shape, name, depth);
    if (any == nullptr) return;
    for (const Shape& shape : any->alternatives) add_object(shape, name, depth);
  }
  void add_object(const Shape& shape, const std::string& name, std::size_t depth) {
    const auto* object = std::get_if<ObjectShape>(&shape.form);
    if (object != nullptr) add(object->section(), name + ".", depth + 1);
  }

  std::set<std::string> seen_;
};

}  // namespace

bool is_range(std::string_view values) { return values.find(kTo) != std::string_view::npos; }

Expected<Sweep> drafted_sweep(std::string_view text, const std::filesystem::path& file,
                              const SweepDraft& draft) {
  auto scenario = parse_json(text);
  if (!scenario) return tl::unexpected(scenario.error());
  if (scenario->is_object()) scenario->erase("trainyard");
  auto vary = vary_json(draft.axes);
  if (!vary) return tl::unexpected(vary.error());
  const SweepDocument settings{.evaluate = draft.evaluate,
                               .combine = draft.combine,
                               .samples = draft.samples,
                               .seed = draft.seed};
  Json document = {{"trainyard", "sweep/1"}, {"scenario", *std::move(scenario)}};
  document.update(sweep_section().write(settings, Keys::said));
  document["vary"] = *std::move(vary);
  if (!draft.where.empty()) document["where"] = Json::array({draft.where});
  return sweep_of_text(text_of(document), "", file);
}

Expected<OpenedSweep> opened_sweep(const std::filesystem::path& file,
                                   const std::filesystem::path& destination) {
  const auto sweep = read_sweep(file);
  if (!sweep) return tl::unexpected(sweep.error());
  const SweepDocument& document = sweep->document;
  auto axes = check_is_drafted(document).and_then([&] { return typed_axes(document.vary); });
  if (!axes) return failure(file.string() + ": " + axes.error().where, axes.error().message);
  Json scenario = {{"trainyard", "scenario/1"}};
  scenario.update(document.scenario.is_object() ? document.scenario : sweep->base);
  return scenario_at(text_of(scenario), file, destination).map([&](std::string text) {
    return OpenedSweep{.scenario = std::move(text),
                       .draft = {.axes = *std::move(axes),
                                 .combine = document.combine,
                                 .samples = document.samples,
                                 .seed = document.seed,
                                 .evaluate = document.evaluate,
                                 .where = joined_conditions(document.where)}};
  });
}

const std::vector<SweepKey>& sweep_keys() {
  static const std::vector<SweepKey> keys = [] {
    KeyList list;
    list.add(scenario_section().spec(), "", 1);
    return std::move(list.keys);
  }();
  return keys;
}

}  // namespace trainyard
