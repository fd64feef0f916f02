#include "cli/text/layout/columns.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard {
namespace {

// Length in bytes of the colour code that starts at `text`; 0: none does.
std::size_t colour_code(std::string_view text) {
  if (!text.starts_with("\x1b[")) {
    return 0;
  }
  const std::size_t end = text.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// The first `columns` code points.
std::string_view prefix(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    seen += continues_code_point(text[end]) ? 0 : 1;
    if (seen > columns) {
      break;
    }
  }
  return text.substr(0, end);
}

std::string_view suffix(std::string_view text, std::size_t columns) {
  const std::size_t width = display_width(text);
  return columns >= width ? text : text.substr(prefix(text, width - columns).size());
}

// The first word, with the words that must stay on its line.
std::string_view unbroken_prefix(std::string_view text) {
  std::size_t end = text.find(' ');
  while (end < text.size() && end > 0 && text[end - 1] >= '0' && text[end - 1] <= '9') {
    end = text.find(' ', end + 1);
  }
  return text.substr(0, end);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t code = colour_code(text.substr(i)); code > 0) {
      i += code;
      continue;
    }
    width += continues_code_point(text[i]) ? 0 : 1;
    ++i;
  }
  return width;
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t own = display_width(text);
  return std::string(width > own ? width - own : 0, ' ').append(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
  const std::size_t own = display_width(text);
  return std::string(text).append(width > own ? width - own : 0, ' ');
}

std::string elide(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  const std::size_t head = (width - 1) / 2;
  return fmt::format("{}…{}", prefix(text, head), suffix(text, width - 1 - head));
}

std::string wrap(std::string_view text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = unbroken_prefix(text);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t width = display_width(word);
    if (column > indent && column + 1 + width > kLineWidth) {
      result.append("\n").append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += width;
  }
  return result + '\n';
}

}  // namespace trainyard
