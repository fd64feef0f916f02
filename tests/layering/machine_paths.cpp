#include "tests/layering/machine_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

namespace trainyard {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kForbidden = {"/home/", "/root/", "/tmp/", "/work/",
                                                        "/Users/"};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Whether an absolute path starts at `at`: before a relative one stands a name, a dot or a
// variable.
bool starts_at(std::string_view line, std::size_t at) {
  if (at == 0) return true;
  const char before = line[at - 1];
  return !is_name(before) && before != '.' && before != '/' && before != '}' && before != ')';
}

bool mentions(std::string_view line, std::string_view folder) {
  for (auto at = line.find(folder); at != std::string_view::npos; at = line.find(folder, at + 1)) {
    const std::size_t end = at + folder.size();
    if (starts_at(line, at) && end < line.size() && is_name(line[end])) return true;
  }
  return false;
}

// Names at the root, as `.gitignore` spells them; `.git` itself is a folder, or a file in a
// worktree.
std::set<std::string> ignored_names(const fs::path& root) {
  std::set<std::string> names = {".git"};
  std::ifstream stream(root / ".gitignore");
  for (std::string line; std::getline(stream, line);) {
    std::erase(line, '/');
    if (!line.empty()) names.insert(line);
  }
  return names;
}

void check_text(const std::string& name, std::string_view text, PathReport& report) {
  int number = 1;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    for (const std::string_view folder : kForbidden) {
      if (mentions(line, folder)) {
        report.violations.push_back(
            fmt::format("{}:{}: names a path below {}", name, number, folder));
      }
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
  }
}

void check_file(const fs::path& root, const fs::path& file, PathReport& report) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (text.find('\0') != std::string::npos) return;
  check_text(file.lexically_relative(root).string(), text, report);
  ++report.checked_files;
}

}  // namespace

PathReport check_machine_paths(const fs::path& root) {
  PathReport report;
  const std::set<std::string> ignored = ignored_names(root);
  for (auto entry = fs::recursive_directory_iterator(root);
       entry != fs::recursive_directory_iterator(); ++entry) {
    if (ignored.contains(entry->path().filename().string())) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && !entry->is_symlink()) {
      check_file(root, entry->path(), report);
    }
  }
  std::ranges::sort(report.violations);
  return report;
}

}  // namespace trainyard
