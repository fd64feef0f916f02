// TOML as a JSON value and back: at most 1 MiB, nested at most 64 deep; dates are refused.
#pragma once

#include "scenarios/interchange/documents/foreign_file.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

// Errors name the line.
Expected<Json> parse_toml(const ForeignFile& file);

// Writes TOML, keys in order of name. Requires: an object of objects of numbers, texts, flags and
// lists of them.
std::string toml_text(const Json& tree);

}  // namespace trainyard
