// Which folder may include what: the arrows of docs/architecture.md, checked on the text of the
// sources, because the link graph does not see a header-only leak.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {

// One line per forbidden include below the folders of `root`: "planner/search.cpp:3: includes …".
// Sorted by file. Folders that do not exist are passed over; an unreadable tree gives no lines, so
// a caller checks `checked_files` too.
struct IncludeReport {
  int checked_files = 0;
  std::vector<std::string> violations;
};
IncludeReport check_includes(const std::filesystem::path& root);

}  // namespace trainyard
