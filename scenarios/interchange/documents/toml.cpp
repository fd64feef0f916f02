#include "scenarios/interchange/documents/toml.h"

#include <fmt/format.h>

#include <locale>
#include <sstream>
// The parser's own default is 256 levels.
#define TOML_MAX_NESTED_VALUES 64
#include <toml++/toml.h>

namespace trainyard {
namespace {

constexpr std::size_t kLargestToml = std::size_t{1} << 20;  // bytes

// Recursion is safe, because the parser limits nesting.
Expected<Json> value_of(const toml::node& node, const ForeignFile& file, std::size_t depth) {
  const auto refuse = [&](std::string message) {
    return file.error_in_line(node.source().begin.line, std::move(message));
  };
  if (depth > kDeepestNesting) {
    return refuse(fmt::format("nested deeper than {} levels", kDeepestNesting));
  }
  if (const auto* text = node.as_string()) return Json(text->get());
  if (const auto* whole = node.as_integer()) return Json(whole->get());
  if (const auto* real = node.as_floating_point()) return Json(real->get());
  if (const auto* flag = node.as_boolean()) return Json(flag->get());
  if (const auto* list = node.as_array()) {
    Json values = Json::array();
    for (const toml::node& element : *list) {
      auto value = value_of(element, file, depth + 1);
      if (!value) return value;
      values.push_back(*std::move(value));
    }
    return values;
  }
  const auto* table = node.as_table();
  if (table == nullptr) return refuse("found a date or time; allowed: numbers, texts and flags");
  Json object = Json::object();
  for (const auto& [key, member] : *table) {
    auto value = value_of(member, file, depth + 1);
    if (!value) return value;
    append_member(object, std::string(key.str()), *std::move(value));
  }
  return object;
}

toml::array array_of(const Json& list) {
  toml::array array;
  for (const Json& element : list) {
    if (element.is_string()) array.push_back(element.get<std::string>());
    if (element.is_number_integer()) array.push_back(element.get<std::int64_t>());
    if (element.is_array()) array.push_back(array_of(element));
  }
  return array;
}

toml::table table_of(const Json& object) {
  toml::table table;
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      table.insert(key, table_of(value));
    } else if (value.is_array()) {
      table.insert(key, array_of(value));
    } else if (value.is_string()) {
      table.insert(key, value.get<std::string>());
    } else if (value.is_boolean()) {
      table.insert(key, value.get<bool>());
    } else if (value.is_number_integer()) {
      table.insert(key, value.get<std::int64_t>());
    } else {
      table.insert(key, value.get<double>());
    }
  }
  return table;
}

}  // namespace

Expected<Json> parse_toml(const ForeignFile& file) {
  if (file.text.size() > kLargestToml) {
    return file.error(
        fmt::format("has {} bytes; allowed: at most {} (1 MiB)", file.text.size(), kLargestToml));
  }
  try {
    return value_of(toml::parse(file.text), file, 0);
  } catch (const toml::parse_error& error) {
    return file.error_in_line(error.source().begin.line,
                              fmt::format("found text that is not TOML ({})",
                                          shown(std::string_view(error.description()))));
  }
}

std::string toml_text(const Json& tree) {
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  stream << table_of(tree) << "\n";
  return stream.str();
}

}  // namespace trainyard
