#include "tests/layering/type_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <string_view>

namespace trainyard {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kSearched = {
    "benchmarks", "cli", "executor", "gui", "model", "planner", "scenarios", "simulator", "tests"};

// The name of the type that a line defines; empty: none. A specialisation is no new type, a line
// that ends with a semicolon only declares one.
std::string_view defined_type(std::string_view line) {
  for (const std::string_view opening : {"struct ", "class ", "enum class "}) {
    if (!line.starts_with(opening)) continue;
    const std::string_view rest = line.substr(opening.size());
    const auto end =
        std::ranges::find_if(rest, [](char c) { return std::isalnum(c) == 0 && c != '_'; });
    const std::string_view name = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    const std::string_view tail = rest.substr(name.size());
    return tail.starts_with('<') || !tail.ends_with('{') ? std::string_view{} : name;
  }
  return {};
}

std::vector<fs::path> headers_below(const fs::path& root) {
  std::vector<fs::path> headers;
  for (const std::string_view folder : kSearched) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".h") headers.push_back(entry.path());
    }
  }
  std::ranges::sort(headers);
  return headers;
}

}  // namespace

TypeReport check_type_names(const fs::path& root) {
  TypeReport report;
  std::map<std::string, std::string, std::less<>> first;  // the header of every name
  for (const fs::path& header : headers_below(root)) {
    const std::string file = header.lexically_relative(root).string();
    std::ifstream stream(header);
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      const std::string_view name = defined_type(line);
      if (name.empty()) continue;
      const auto [known, is_new] = first.try_emplace(std::string(name), file);
      if (is_new) continue;
      report.violations.push_back(
          fmt::format("{}:{}: {} is defined in {} too", file, number, name, known->second));
    }
    ++report.checked_files;
  }
  return report;
}

}  // namespace trainyard
