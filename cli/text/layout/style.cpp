#include "cli/text/layout/style.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace trainyard {

std::string Style::coded(std::string_view code, std::string_view text) const {
  return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

Style style_for(std::FILE* stream) {
  const char* off = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool wanted = (off == nullptr || *off == '\0') &&
                      (terminal == nullptr || std::string_view(terminal) != "dumb");
  return Style(wanted && is_terminal(stream));
}

}  // namespace trainyard
