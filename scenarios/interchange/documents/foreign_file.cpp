#include "scenarios/interchange/documents/foreign_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/fields/place.h"

namespace trainyard {

tl::unexpected<Error> ForeignFile::error(std::string message) const {
  return failure(name, std::move(message));
}

tl::unexpected<Error> ForeignFile::error_at(std::size_t position, std::string message) const {
  const std::string_view before = std::string_view(text).substr(0, position);
  return error_in_line(static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1,
                       std::move(message));
}

tl::unexpected<Error> ForeignFile::error_in_line(std::size_t line, std::string message) const {
  return failure(fmt::format("{}: line {}", name, line), std::move(message));
}

Expected<ForeignFile> read_foreign_file(const std::filesystem::path& file, std::size_t most) {
  auto text = read_file(file, most);
  if (!text) return failure(shown_path(file), text.error().message);
  return ForeignFile{shown_path(file), shown_path(file.stem()), *std::move(text)};
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

}  // namespace trainyard
