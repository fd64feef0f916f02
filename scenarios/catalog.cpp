#include "scenarios/catalog.h"

#include <algorithm>

namespace trainyard {

const CatalogEntry* find_in_catalog(std::string_view kind, std::string_view name) {
  const auto entries = catalog();
  const auto found = std::ranges::find_if(
      entries, [&](const CatalogEntry& entry) { return entry.kind == kind && entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

std::vector<std::string> catalog_names(std::string_view kind) {
  std::vector<std::string> names;
  for (const CatalogEntry& entry : catalog()) {
    if (entry.kind == kind) names.emplace_back(entry.name);
  }
  return names;
}

}  // namespace trainyard
