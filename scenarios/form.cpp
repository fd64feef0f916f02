#include "scenarios/form.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/catalog.h"
#include "scenarios/fields/kinds.h"
#include "scenarios/fields/shape.h"
#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

template <typename S>
const S* as(const Shape& shape) {
  return std::get_if<S>(&shape.form);
}

// The first alternative of that kind; a shape without alternatives is its own only one.
template <typename S>
const S* alternative(const Shape& shape) {
  if (const auto* any = as<AnyShape>(shape)) {
    for (const Shape& one : any->alternatives) {
      if (const S* found = as<S>(one)) return found;
    }
    return nullptr;
  }
  return as<S>(shape);
}

const ObjectShape* object_meant(const Shape& shape, const Json* value) {
  const auto* any = as<AnyShape>(shape);
  if (any == nullptr) return as<ObjectShape>(shape);
  if (value == nullptr || !value->is_object()) return nullptr;
  for (const Shape& one : any->alternatives) {
    const auto* object = as<ObjectShape>(one);
    if (object != nullptr && (object->marker.empty() || value->contains(object->marker))) {
      return object;
    }
  }
  return nullptr;
}

FormEditor editor_of(const Shape& shape) {
  if (alternative<ReferenceShape>(shape) != nullptr) return FormEditor::reference;
  if (alternative<ChoiceShape>(shape) != nullptr) return FormEditor::choice;
  if (alternative<QuantityShape>(shape) != nullptr) return FormEditor::quantity;
  if (alternative<FlagShape>(shape) != nullptr) return FormEditor::flag;
  if (alternative<CountShape>(shape) != nullptr) return FormEditor::number;
  if (alternative<NumberShape>(shape) != nullptr) return FormEditor::number;
  if (alternative<PathShape>(shape) != nullptr) return FormEditor::path;
  return alternative<TextShape>(shape) != nullptr ? FormEditor::text : FormEditor::json;
}

std::string typed_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_line(value);
}

std::string without_ticks(std::string text) {
  std::erase(text, '`');
  return text;
}

std::string absence_of(const FieldSpec& field) {
  if (!field.absent.empty()) return without_ticks(field.absent);
  return field.default_value ? typed_of(*field.default_value) : std::string();
}

class FormBuilder {
 public:
  // `value`: the object of the section, or nullptr where there is none.
  void add_section(const SectionSpec& section, const Json* value, const std::string& pointer,
                   int parent) {
    for (const FieldSpec& field : section.fields) {
      const Json* member = nullptr;
      if (value != nullptr && value->is_object() && value->contains(field.key)) {
        member = &value->at(field.key);
      }
      add_field(field, member, pointer + pointer_step(field.key), parent);
    }
  }

  std::vector<FormRow> rows;

 private:
  void add_field(const FieldSpec& field, const Json* value, const std::string& pointer,
                 int parent) {
    const ObjectShape* object = object_meant(field.shape, value);
    FormRow row{.pointer = pointer,
                .key = field.key,
                .parent = parent,
                .editor = object != nullptr ? FormEditor::section : editor_of(field.shape),
                .doc = without_ticks(field.doc),
                .absent = absence_of(field),
                .allowed = allowed(field.shape),
                .required = field.required,
                .present = value != nullptr};
    if (const auto* choice = alternative<ChoiceShape>(field.shape)) row.choices = choice->names;
    if (row.editor == FormEditor::flag) row.choices = {"true", "false"};
    if (const auto* reference = alternative<ReferenceShape>(field.shape)) {
      row.catalog = std::string(reference->kind);
      row.choices = catalog_names(reference->kind);
    }
    if (value != nullptr && object == nullptr) row.value = typed_of(*value);
    rows.push_back(std::move(row));
    if (object != nullptr && (value != nullptr || is_near(parent, *object))) {
      add_section(object->section(), value, pointer, static_cast<int>(rows.size()) - 1);
    }
  }

  // Whether an absent section shows its keys too: if it belongs to the document or to one of its
  // sections.
  bool is_near(int parent, const ObjectShape& object) const {
    if (object.section().name.ends_with("_sources")) return false;
    return parent < 0 || rows[static_cast<std::size_t>(parent)].parent < 0;
  }
};

bool is_json(std::string_view text) { return parse_json(text).has_value(); }

std::string quoted(std::string_view text) { return json_line(Json(std::string(text))); }

std::string_view trimmed(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

// "4, 8" or "1f1b, zb-h1" as a list.
std::string list_of_typed(std::string_view typed) {
  std::string list = "[";
  while (true) {
    const std::size_t comma = std::min(typed.find(','), typed.size());
    const std::string_view entry = trimmed(typed.substr(0, comma));
    list += is_json(entry) ? std::string(entry) : quoted(entry);
    if (comma == typed.size()) return list + "]";
    list += ", ";
    typed.remove_prefix(comma + 1);
  }
}

}  // namespace

Expected<Form> form_of(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed) return tl::unexpected(parsed.error());
  std::string_view tag;
  if (parsed->is_object() && parsed->contains("trainyard") && parsed->at("trainyard").is_string()) {
    tag = parsed->at("trainyard").get_ref<const std::string&>();
  }
  for (const DocumentKind& kind : kinds()) {
    if (tag != fmt::format("{}/1", kind.name)) continue;
    FormBuilder builder;
    builder.add_section(kind.section(), &*parsed, "", -1);
    return Form{std::string(kind.name), std::move(builder.rows)};
  }
  return failure("/trainyard", "found no kind of document; allowed: \"scenario/1\" and the like");
}

std::string json_of_typed(const FormRow& row, std::string_view typed) {
  typed = trimmed(typed);
  const bool structured = typed.starts_with('{') || typed.starts_with('[');
  if (structured && is_json(typed)) return std::string(typed);
  switch (row.editor) {
    case FormEditor::text:
    case FormEditor::quantity:
    case FormEditor::reference:
    case FormEditor::path:
      return quoted(typed);
    case FormEditor::choice:
    case FormEditor::number:
    case FormEditor::flag:
    case FormEditor::json:
    case FormEditor::section:
      break;
  }
  if (typed.find(',') != std::string_view::npos) return list_of_typed(typed);
  const bool name = std::ranges::find(row.choices, typed) != row.choices.end();
  const bool plain = row.editor != FormEditor::choice || !name;
  return plain && is_json(typed) ? std::string(typed) : quoted(typed);
}

}  // namespace trainyard
