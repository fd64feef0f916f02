// JSON text as a value that keeps the order of keys. Stricter than the library alone: duplicate
// keys, numbers beyond double, a byte-order mark, NUL bytes and nesting beyond 64 levels are
// errors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "model/expected.h"

namespace trainyard {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kDeepestNesting = 64;

// The error's `where` is the line and column, or the JSON pointer of a duplicate key.
Expected<Json> parse_json(std::string_view text);

// Appends a member without looking whether the object has it. Requires: it does not.
Json& append_member(Json& object, const std::string& key, Json value);

// The value as indented text with a line feed at the end; bytes that are not UTF-8 are replaced.
std::string text_of(const Json& value);
// The value on one line, without a line feed.
std::string json_line(const Json& value);

// A value as an error shows it: at most 80 characters, one line, valid UTF-8.
std::string shown(const Json& value);
std::string shown(std::string_view text);

// "/key" as a step of a JSON pointer: escaped, and shortened like `shown`.
std::string pointer_step(std::string_view key);

}  // namespace trainyard
