// No file of the repository may tell where somebody built it: generated charts and documents are
// checked in, and a path of one machine in them is noise in every difference.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {

// One line per mention of an absolute path below a home, work or temporary folder:
// "docs/plot.svg:4: …". Sorted by file. What `.gitignore` names at the root is passed over, and
// files that are no text; an unreadable tree gives no lines, so a caller checks `checked_files`.
struct PathReport {
  int checked_files = 0;
  std::vector<std::string> violations;
};
PathReport check_machine_paths(const std::filesystem::path& root);

}  // namespace trainyard
