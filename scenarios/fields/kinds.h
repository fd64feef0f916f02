// The kinds of documents and their sections, for everything that is generated from all of them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "scenarios/fields/shape.h"

namespace trainyard {

struct DocumentKind {
  std::string_view name;
  const SectionSpec& (*section)();
};
std::span<const DocumentKind> kinds();

// All sections that the fields of `section` lead to, without itself, each once, in order of first
// mention.
std::vector<const SectionSpec*> parts_of(const SectionSpec& section);

}  // namespace trainyard
