#include "scenarios/interchange/shell/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/interchange/shell/script.h"

namespace trainyard {

Expected<Options> parse_command_line(const ForeignFile& file) {
  auto commands = commands_of(file);
  if (!commands) return tl::unexpected(commands.error());
  Options options(file.name, Options::Flags::without_value);
  std::string name;
  Option option;
  const auto flush = [&] {
    if (!name.empty()) options.set(name, std::move(option));
    name.clear();
  };
  for (ShellWord& word : commands->words) {
    if (word.begins_command) flush();
    if (!word.text.starts_with("--") || word.text.size() == 2) {
      option.words.push_back(std::move(word.text));
      continue;
    }
    flush();
    option = {{}, fmt::format("{}: line {}", file.name, word.line)};
    const std::size_t equals = std::min(word.text.find('='), word.text.size());
    name = word.text.substr(2, equals - 2);
    std::ranges::replace(name, '-', '_');
    if (equals < word.text.size()) option.words.push_back(word.text.substr(equals + 1));
  }
  flush();
  options.assume(std::move(commands->assumptions));
  return options;
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else if (c != '\0') {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace trainyard
