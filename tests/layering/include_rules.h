// Checks on the text of the sources which folder includes which, by the table "Arrows" of
// docs/architecture.md. The link graph alone does not show an include of a header-only part.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {

// One line per forbidden include below the folders of `root`, sorted by file:
// "planner/search.cpp:3: includes …". Folders that do not exist are skipped. An unreadable tree
// gives no lines, so a caller also checks `checked_files`.
struct IncludeReport {
  int checked_files = 0;
  std::vector<std::string> violations;
};
IncludeReport check_includes(const std::filesystem::path& root);

}  // namespace trainyard
