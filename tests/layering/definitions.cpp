#include "tests/layering/definitions.h"

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

// Headers below this folder replace others, in separate programs.
constexpr std::string_view kStandIns = "tests/gpu/emulated";

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The name of the type that a line defines; empty if it defines none. A specialisation is no new
// type, and a line with a semicolon before any brace only declares one.
std::string_view defined_type(std::string_view line) {
  for (const std::string_view opening : {"struct ", "class ", "enum class "}) {
    if (!line.starts_with(opening)) continue;
    const std::string_view rest = line.substr(opening.size());
    const auto end = std::ranges::find_if_not(rest, in_name);
    const std::string_view name = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    const std::string_view tail = rest.substr(name.size());
    const bool declares = tail.find(';') < tail.find('{');
    return tail.starts_with('<') || declares ? std::string_view{} : name;
  }
  return {};
}

// The type of a parameter such as "const Plan& plan = {}": what stands before the name.
std::string_view type_of(std::string_view parameter) {
  parameter = parameter.substr(0, parameter.find('='));
  const auto last = parameter.find_last_not_of(' ');
  if (last == std::string_view::npos) return {};
  parameter = parameter.substr(0, last + 1);
  const auto name = std::find_if_not(parameter.rbegin(), parameter.rend(), in_name);
  const std::string_view type =
      parameter.substr(0, static_cast<std::size_t>(parameter.rend() - name));
  if (type.find_first_not_of(' ') == std::string_view::npos) return parameter;  // without a name
  return type.substr(0, type.find_last_not_of(' ') + 1);
}

// "uniform(std::uint64_t)" for a line that begins an inline or constexpr function and ends its
// parameters; empty for any other line.
std::string defined_function(std::string_view line) {
  if (!line.starts_with("inline ") && !line.starts_with("constexpr ")) return {};
  const auto open = line.find('('), close = line.find(')');
  if (close == std::string_view::npos || line.find('=') < open) return {};
  const std::string_view head = line.substr(0, open);
  const auto name = std::find_if_not(head.rbegin(), head.rend(), in_name);
  std::string signature(head.substr(static_cast<std::size_t>(head.rend() - name)));
  if (signature.empty()) return {};  // an operator
  signature += '(';
  std::string_view rest = line.substr(open + 1, close - open - 1);
  for (std::string_view between; !rest.empty(); between = ", ") {
    const auto comma = rest.find(',');
    signature += fmt::format("{}{}", between, type_of(rest.substr(0, comma)));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  return signature + ')';
}

std::vector<fs::path> headers_below(const fs::path& root) {
  std::vector<fs::path> headers;
  for (const std::string_view folder : kSearched) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path& path = entry.path();
      const bool stands_in = path.string().starts_with((root / kStandIns).string());
      if (path.extension() == ".h" && !stands_in) headers.push_back(path);
    }
  }
  std::ranges::sort(headers);
  return headers;
}

}  // namespace

DefinitionReport check_definitions(const fs::path& root) {
  DefinitionReport report;
  std::map<std::string, std::string> first;  // the header of every name
  for (const fs::path& header : headers_below(root)) {
    const std::string file = header.lexically_relative(root).string();
    std::ifstream stream(header);
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      std::string name(defined_type(line));
      if (name.empty()) name = defined_function(line);
      if (name.empty()) continue;
      const auto [known, is_new] = first.try_emplace(name, file);
      if (is_new) continue;
      report.violations.push_back(
          fmt::format("{}:{}: {} is defined in {} too", file, number, name, known->second));
    }
    ++report.checked_files;
  }
  return report;
}

}  // namespace trainyard
