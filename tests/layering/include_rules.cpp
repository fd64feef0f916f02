#include "tests/layering/include_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string_view>;

struct Folder {
  std::string_view name;
  Names sees;  // beside itself
};

const std::array<Folder, 7> kFolders = {{
    {"model", {}},
    {"simulator", {"model"}},
    {"planner", {"model"}},
    {"executor", {"model"}},
    {"scenarios", {"model", "simulator", "planner"}},
    {"cli", {"model", "simulator", "planner", "executor", "scenarios"}},
    {"gui", {"model", "simulator", "planner", "executor", "scenarios"}},
}};

// Headers from outside that only some folders may see: JSON is read and written in scenarios/
// alone, ...
struct Outside {
  std::string_view prefix;
  Names only_in;
};

const std::array<Outside, 10> kOutside = {{
    {"nlohmann/", {"scenarios"}},
    {"pugixml", {"scenarios"}},
    {"sqlite3", {"scenarios"}},
    {"toml++/", {"scenarios"}},
    {"yaml-cpp/", {"scenarios"}},
    {"CLI/", {"cli"}},
    {"Q", {"gui"}},
    {"mpi", {"executor"}},
    {"cu", {"executor"}},
    {"nccl", {"executor"}},
}};

// ... and model/ is values and pure functions: no I/O, no clock, no randomness, no threads.
const Names kNotInModel = {"chrono", "ctime",    "filesystem", "fstream", "iostream",
                           "cstdio", "fmt/os.h", "random",     "thread",  "mutex"};

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Include {
  bool quoted = false;
  std::string header;
};

std::optional<Include> parse_include(std::string_view line) {
  const auto skip_blanks = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  skip_blanks();
  if (!line.starts_with('#')) return std::nullopt;
  line.remove_prefix(1);
  skip_blanks();
  if (!line.starts_with("include")) return std::nullopt;
  const auto open = line.find_first_of("<\"");
  if (open == std::string_view::npos) return std::nullopt;
  const bool quoted = line[open] == '"';
  const auto close = line.find(quoted ? '"' : '>', open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  return Include{quoted, std::string(line.substr(open + 1, close - open - 1))};
}

// Why `folder` may not include the header; nothing if it may.
std::optional<std::string> objection(const Folder& folder, const Include& include) {
  const std::string_view header = include.header;
  if (include.quoted) {
    const std::string_view target = header.substr(0, header.find('/'));
    if (target == folder.name || contains(folder.sees, target)) return std::nullopt;
    return fmt::format(
        "{}/ sees {}", folder.name,
        folder.sees.empty() ? "itself only" : fmt::format("{}", fmt::join(folder.sees, ", ")));
  }
  for (const Outside& outside : kOutside) {
    if (header.starts_with(outside.prefix) && !contains(outside.only_in, folder.name)) {
      return fmt::format("only {}/ may", fmt::join(outside.only_in, "/, "));
    }
  }
  if (folder.name == "model" && contains(kNotInModel, header))
    return "model/ is values and pure functions";
  return std::nullopt;
}

bool is_source(const fs::path& file) {
  const auto extension = file.extension();
  return extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh";
}

void check_file(const fs::path& root, const fs::path& file, const Folder& folder,
                IncludeReport& report) {
  std::ifstream stream(file);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    const auto include = parse_include(line);
    if (!include) continue;
    if (const auto why = objection(folder, *include)) {
      report.violations.push_back(fmt::format("{}:{}: includes {}, but {}",
                                              file.lexically_relative(root).string(), number,
                                              include->header, *why));
    }
  }
  ++report.checked_files;
}

}  // namespace

IncludeReport check_includes(const fs::path& root) {
  IncludeReport report;
  for (const Folder& folder : kFolders) {
    const fs::path top = root / folder.name;
    if (!fs::is_directory(top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(top)) {
      if (entry.is_regular_file() && is_source(entry.path()))
        check_file(root, entry.path(), folder, report);
    }
  }
  std::sort(report.violations.begin(), report.violations.end());
  return report;
}

}  // namespace trainyard
