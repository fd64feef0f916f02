#include "scenarios/fields/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <regex>
#include <utility>

#include "scenarios/json/nearest_name.h"

namespace trainyard {
namespace {

constexpr std::size_t kLongestText = 4096;  // bytes

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  const std::string nearest = nearest_name(name, known);
  return nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest);
}

std::vector<std::string> keys_of(const SectionSpec& section) {
  std::vector<std::string> keys;
  for (const FieldSpec& field : section.fields) keys.push_back(field.key);
  return keys;
}

std::string allowed_form(const QuantityShape& shape) {
  const DimensionRecord& record = record_of(shape.dimension);
  return fmt::format("a {} with its unit, such as \"{}\"", record.name, record.example);
}
std::string allowed_form(const CountShape& shape) {
  return fmt::format("a whole number from {} to {}", shape.least, shape.most);
}
std::string allowed_form(const NumberShape& shape) {
  return shape.least_allowed
             ? fmt::format("a number from {} to {}", shape.least, shape.most)
             : fmt::format("a number above {}, at most {}", shape.least, shape.most);
}
std::string allowed_form(const FlagShape& /*shape*/) { return "true or false"; }
std::string allowed_form(const TextShape& shape) {
  return shape.pattern.empty() ? "a line of text" : std::string(shape.pattern_means);
}
std::string allowed_form(const ChoiceShape& shape) {
  const std::string path =
      shape.document.empty() ? "" : fmt::format(" or a path to a {}/1 document", shape.document);
  return fmt::format("\"{}\"{}", fmt::join(shape.names, "\", \""), path);
}
std::string allowed_form(const ReferenceShape& shape) {
  return fmt::format("the name of a {} in the catalog or a path to a {}/1 document", shape.kind,
                     shape.kind);
}
std::string allowed_form(const PathShape& shape) { return fmt::format("a path to {}", shape.what); }
std::string allowed_form(const ValueShape& /*shape*/) { return "a value of the key"; }
std::string allowed_form(const ObjectShape& shape) {
  if (!shape.marker.empty()) return fmt::format("an object with \"{}\"", shape.marker);
  return fmt::format("an object (keys of `{}`)", shape.section().name);
}
std::string allowed_form(const ListShape& shape) {
  std::string length = shape.size == 0 ? "" : fmt::format(" of {}", shape.size);
  if (shape.most > shape.size) length += fmt::format(" to {}", shape.most);
  return fmt::format("a list{}, each entry {}", length, allowed(shape.element.front()));
}
std::string allowed_form(const AnyShape& shape) {
  std::vector<std::string> forms;
  for (const Shape& alternative : shape.alternatives) forms.push_back(allowed(alternative));
  return fmt::format("{}", fmt::join(forms, ", or "));
}

tl::unexpected<Error> mismatch(const Json& value, const Place& place, std::string_view wanted) {
  return place.error(fmt::format("found {}; allowed: {}", shown(value), wanted));
}

bool is_line_of_text(const Json& value) {
  if (!value.is_string()) return false;
  const std::string& text = value.get_ref<const std::string&>();
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  return !text.empty() && text.size() <= kLongestText && std::ranges::none_of(text, control);
}

Expected<void> check_form(const QuantityShape& shape, const Json& value, const Place& place) {
  if (value.is_number()) {
    return place.error(
        fmt::format("found {} without a unit; allowed: {}", shown(value), allowed_form(shape)));
  }
  if (!value.is_string()) return mismatch(value, place, allowed_form(shape));
  const Expected<double> parsed =
      parse_quantity(value.get_ref<const std::string&>(), shape.dimension, shape.zero_allowed);
  if (!parsed) return mismatch(value, place, parsed.error().message);
  return {};
}

Expected<void> check_form(const CountShape& shape, const Json& value, const Place& place) {
  if (value.is_number()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && number >= shape.least && number <= shape.most) return {};
  }
  return mismatch(value, place, allowed_form(shape));
}

Expected<void> check_form(const NumberShape& shape, const Json& value, const Place& place) {
  if (value.is_number()) {
    const double number = value.get<double>();
    const bool high_enough = shape.least_allowed ? number >= shape.least : number > shape.least;
    if (high_enough && number <= shape.most) return {};
  }
  return mismatch(value, place, allowed_form(shape));
}

Expected<void> check_form(const FlagShape& shape, const Json& value, const Place& place) {
  if (value.is_boolean()) return {};
  return mismatch(value, place, allowed_form(shape));
}

// Compiled once in each thread, because compiling takes a hundred times as long as matching.
const std::regex& compiled(std::string_view pattern) {
  thread_local std::map<std::string, std::regex, std::less<>> known;
  const auto found = known.find(pattern);
  if (found != known.end()) return found->second;
  std::string text(pattern);
  std::regex expression(text);
  return known.emplace(std::move(text), std::move(expression)).first->second;
}

Expected<void> check_form(const TextShape& shape, const Json& value, const Place& place) {
  if (!is_line_of_text(value)) {
    return mismatch(value, place, "one line of text, at most 4096 bytes, no control characters");
  }
  if (shape.pattern.empty()) return {};
  constexpr std::size_t kLongestPatterned = 64;  // the matcher recurses for every character
  const std::string& text = value.get_ref<const std::string&>();
  if (text.size() <= kLongestPatterned && std::regex_match(text, compiled(shape.pattern))) {
    return {};
  }
  return mismatch(value, place, allowed_form(shape));
}

Expected<void> check_form(const ChoiceShape& shape, const Json& value, const Place& place) {
  if (!value.is_string()) return mismatch(value, place, allowed_form(shape));
  const std::string& name = value.get_ref<const std::string&>();
  if (std::ranges::find(shape.names, name) != shape.names.end()) return {};
  if (!shape.document.empty() && looks_like_a_path(name) && is_line_of_text(value)) return {};
  return mismatch(value, place, allowed_form(shape) + did_you_mean(name, shape.names));
}

Expected<void> check_form(const ReferenceShape& shape, const Json& value, const Place& place) {
  if (is_line_of_text(value)) return {};
  return mismatch(value, place, allowed_form(shape));
}

Expected<void> check_form(const PathShape& shape, const Json& value, const Place& place) {
  if (is_line_of_text(value)) return {};
  return mismatch(value, place, allowed_form(shape));
}

Expected<void> check_form(const ValueShape& /*shape*/, const Json& /*value*/,
                          const Place& /*place*/) {
  return {};
}

Expected<void> check_form(const ObjectShape& shape, const Json& value, const Place& place) {
  return check(shape.section(), value, place);
}

Expected<void> check_form(const ListShape& shape, const Json& value, const Place& place) {
  const std::size_t most = std::max(shape.size, shape.most);
  const bool has_length =
      shape.size == 0 ? !value.empty() : value.size() >= shape.size && value.size() <= most;
  if (!value.is_array() || !has_length) return mismatch(value, place, allowed_form(shape));
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (auto fits = check(shape.element.front(), value[i], place / i); !fits) return fits;
  }
  return {};
}

// Whether `value` means this alternative: by its type, and for objects by the marker.
bool is_meant(const Shape& shape, const Json& value) {
  if (const auto* object = std::get_if<ObjectShape>(&shape.form)) {
    return value.is_object() && (object->marker.empty() || value.contains(object->marker));
  }
  if (std::holds_alternative<ListShape>(shape.form)) return value.is_array();
  if (std::holds_alternative<FlagShape>(shape.form)) return value.is_boolean();
  const bool number = std::holds_alternative<CountShape>(shape.form) ||
                      std::holds_alternative<NumberShape>(shape.form);
  return number ? value.is_number() : value.is_string();
}

const Shape* meant_alternative(const AnyShape& shape, const Json& value) {
  const auto found = std::ranges::find_if(
      shape.alternatives, [&](const Shape& alternative) { return is_meant(alternative, value); });
  return found == shape.alternatives.end() ? nullptr : &*found;
}

Expected<void> check_form(const AnyShape& shape, const Json& value, const Place& place) {
  const Shape* meant = meant_alternative(shape, value);
  if (meant == nullptr) return mismatch(value, place, allowed_form(shape));
  auto fits = check(*meant, value, place);
  // A list of names looks complete, so the other alternatives are added to the error, unless the
  // value is a misspelt name.
  const auto* names = std::get_if<ChoiceShape>(&meant->form);
  if (fits || names == nullptr || !did_you_mean(value.get<std::string>(), names->names).empty()) {
    return fits;
  }
  for (const Shape& other : shape.alternatives) {
    if (&other != meant) fits.error().message += ", or " + allowed(other);
  }
  return fits;
}

Expected<void> unknown_key(const SectionSpec& section, const std::string& key, const Place& place) {
  const std::vector<std::string> keys = keys_of(section);
  const std::string nearest = nearest_name(key, keys);
  if (!nearest.empty()) {
    return place.error(fmt::format("found an unknown key; allowed: \"{}\" and other keys of `{}`",
                                   nearest, section.name));
  }
  return place.error(fmt::format("found an unknown key; allowed in `{}`: {}", section.name,
                                 fmt::join(keys, ", ")));
}

void visit(const Shape& shape, Json& value,
           const std::function<void(std::string_view kind, Json& text)>& visitor) {
  if (const auto* any = std::get_if<AnyShape>(&shape.form)) {
    visit(*meant_alternative(*any, value), value, visitor);
  } else if (const auto* object = std::get_if<ObjectShape>(&shape.form)) {
    visit_references(object->section(), value, visitor);
  } else if (const auto* list = std::get_if<ListShape>(&shape.form)) {
    for (Json& entry : value) visit(list->element.front(), entry, visitor);
  } else if (const auto* reference = std::get_if<ReferenceShape>(&shape.form)) {
    visitor(reference->kind, value);
  } else if (std::holds_alternative<PathShape>(shape.form)) {
    visitor("", value);
  } else if (const auto* choice = std::get_if<ChoiceShape>(&shape.form)) {
    if (!choice->document.empty() && looks_like_a_path(value.get_ref<const std::string&>())) {
      visitor(choice->document, value);
    }
  }
}

}  // namespace

SectionSpec sources_of(const SectionSpec& section) {
  SectionSpec sources{.name = section.name + "_sources",
                      .doc = "Where the figures come from, by their key."};
  for (const FieldSpec& field : section.fields) {
    sources.fields.push_back({.key = field.key, .shape = {TextShape{}}, .doc = "its source"});
  }
  return sources;
}

bool looks_like_a_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".json");
}

std::string allowed(const Shape& shape) {
  return std::visit([](const auto& form) { return allowed_form(form); }, shape.form);
}

Expected<void> check(const Shape& shape, const Json& value, const Place& place) {
  return std::visit([&](const auto& form) { return check_form(form, value, place); }, shape.form);
}

namespace {

// `place`: the place of the member.
Expected<void> check_member(const SectionSpec& section, const std::string& key, const Json& member,
                            const Place& place) {
  if (key == "trainyard" && !section.tag.empty()) {
    if (member == section.tag) return {};
    return mismatch(member, place, fmt::format("\"{}\"", section.tag));
  }
  const auto field = std::ranges::find(section.fields, key, &FieldSpec::key);
  if (field == section.fields.end()) return unknown_key(section, key, place);
  return check(field->shape, member, place);
}

}  // namespace

Expected<void> check(const SectionSpec& section, const Json& value, const Place& place) {
  if (!value.is_object()) {
    return mismatch(value, place, fmt::format("an object (keys of `{}`)", section.name));
  }
  for (const auto& [key, member] : value.items()) {
    if (auto fits = check_member(section, key, member, place / key); !fits) return fits;
  }
  for (const FieldSpec& field : section.fields) {
    if (field.required && !value.contains(field.key)) {
      return place.error(
          fmt::format("found no \"{}\"; allowed: {}", field.key, allowed(field.shape)));
    }
  }
  return {};
}

void visit_references(const SectionSpec& section, Json& value,
                      const std::function<void(std::string_view kind, Json& text)>& visitor) {
  for (const FieldSpec& field : section.fields) {
    const auto member = value.find(field.key);
    if (member != value.end()) visit(field.shape, *member, visitor);
  }
}

}  // namespace trainyard
