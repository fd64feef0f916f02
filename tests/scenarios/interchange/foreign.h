// Files of other tools, made from a text.
#pragma once

#include <string>

#include "scenarios/interchange/documents/foreign_file.h"

namespace trainyard {

inline ForeignFile foreign(std::string text) { return {"foreign", "foreign", std::move(text)}; }

inline std::string line_of(const Error& error) { return error.where + ": " + error.message; }

}  // namespace trainyard
