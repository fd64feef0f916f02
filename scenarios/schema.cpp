#include "scenarios/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "scenarios/fields/kinds.h"
#include "scenarios/json/json_document.h"
#include "scenarios/json/nearest_name.h"

namespace trainyard {
namespace {

constexpr std::string_view kLineOfText = "^[^\\u0000-\\u001f\\u007f]+$";
constexpr std::string_view kNameOfAFamily = "^[a-z0-9][a-z0-9-]*$";

Json schema_of(const Shape& shape);

// Whole numbers without a decimal point.
Json bound(double value) {
  constexpr double kExact = 9e15;
  if (std::abs(value) < kExact && std::trunc(value) == value) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

Json line_of_text() {
  return {{"type", "string"}, {"maxLength", 4096}, {"pattern", std::string(kLineOfText)}};
}

Json form_schema(const QuantityShape& shape) {
  return {{"type", "string"},
          {"maxLength", 64},
          {"pattern", quantity_pattern(shape.dimension, shape.zero_allowed)}};
}
Json form_schema(const CountShape& shape) {
  return {{"type", "integer"}, {"minimum", bound(shape.least)}, {"maximum", bound(shape.most)}};
}
Json form_schema(const NumberShape& shape) {
  return {{"type", "number"},
          {shape.least_allowed ? "minimum" : "exclusiveMinimum", bound(shape.least)},
          {"maximum", bound(shape.most)}};
}
Json form_schema(const FlagShape& /*shape*/) { return {{"type", "boolean"}}; }
Json form_schema(const TextShape& shape) {
  if (shape.pattern.empty()) return line_of_text();
  return {{"type", "string"}, {"maxLength", 64}, {"pattern", fmt::format("^{}$", shape.pattern)}};
}
Json form_schema(const ChoiceShape& shape) {
  if (!shape.document.empty()) return line_of_text();
  if (!shape.family.empty()) return {{"type", "string"}, {"pattern", std::string(kNameOfAFamily)}};
  return {{"enum", shape.names}};
}
Json form_schema(const ReferenceShape& /*shape*/) { return line_of_text(); }
Json form_schema(const PathShape& /*shape*/) { return line_of_text(); }
Json form_schema(const ValueShape& /*shape*/) { return Json::object(); }
Json form_schema(const ObjectShape& shape) {
  return {{"$ref", "#/definitions/" + shape.section().name}};
}
Json form_schema(const ListShape& shape) {
  Json schema = {{"type", "array"}, {"items", schema_of(shape.element.front())}};
  schema["minItems"] = std::max<std::size_t>(1, shape.size);
  if (shape.size > 0) schema["maxItems"] = std::max(shape.size, shape.most);
  return schema;
}
Json form_schema(const AnyShape& shape) {
  Json alternatives = Json::array();
  for (const Shape& alternative : shape.alternatives)
    alternatives.push_back(schema_of(alternative));
  return {{"anyOf", std::move(alternatives)}};
}

Json schema_of(const Shape& shape) {
  return std::visit([](const auto& form) { return form_schema(form); }, shape.form);
}

Json field_schema(const FieldSpec& field) {
  Json schema = schema_of(field.shape);
  // Draft 7 ignores what stands beside $ref.
  if (schema.contains("$ref")) schema = {{"allOf", Json::array({schema})}};
  std::string description = field.doc;
  if (!field.absent.empty()) description += fmt::format("; absent: {}", field.absent);
  schema["description"] = std::move(description);
  if (field.absent.empty() && field.default_value) schema["default"] = *field.default_value;
  return schema;
}

// `tag`: what "trainyard" must say; empty for a part of a document, which may have its own tag.
Json section_schema(const SectionSpec& section, const std::string& tag) {
  Json properties = Json::object();
  Json required = Json::array();
  if (!tag.empty()) {
    properties["trainyard"] = {{"const", tag}, {"description", "kind and version of the document"}};
    required.push_back("trainyard");
  } else if (!section.tag.empty()) {
    properties["trainyard"] = {{"const", section.tag}, {"description", "as in a file of its own"}};
  }
  for (const FieldSpec& field : section.fields) {
    properties[field.key] = field_schema(field);
    if (field.required) required.push_back(field.key);
  }
  Json schema = {{"type", "object"},
                 {"description", section.doc},
                 {"properties", std::move(properties)},
                 {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

}  // namespace

std::vector<std::string_view> document_kinds() {
  std::vector<std::string_view> names;
  for (const DocumentKind& kind : kinds()) names.push_back(kind.name);
  return names;
}

Expected<std::string> json_schema(std::string_view name) {
  const auto all = kinds();
  const auto kind = std::ranges::find(all, name, &DocumentKind::name);
  if (kind == all.end()) {
    return failure("KIND", fmt::format("found {}; allowed: {}", shown(name),
                                       fmt::join(document_kinds(), ", ")));
  }
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", fmt::format("{}/1", name)}};
  schema.update(section_schema(kind->section(), fmt::format("{}/1", name)));
  Json definitions = Json::object();
  for (const SectionSpec* part : parts_of(kind->section())) {
    definitions[part->name] = section_schema(*part, "");
  }
  if (!definitions.empty()) schema["definitions"] = std::move(definitions);
  return text_of(schema);
}

}  // namespace trainyard
