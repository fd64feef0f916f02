// Checks that no file of the repository contains a path of the machine that built it. Generated
// charts and documents are checked in, and such a path would appear in every difference.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {

// One line per absolute path below a home, work or temporary folder, sorted by file:
// "docs/plot.svg:4: …". Binary files, and the names that `.gitignore` lists, are skipped. An
// unreadable tree gives no lines, so a caller also checks `checked_files`.
struct PathReport {
  int checked_files = 0;
  std::vector<std::string> violations;
};
PathReport check_machine_paths(const std::filesystem::path& root);

}  // namespace trainyard
