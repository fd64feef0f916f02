// Escapes text of any origin for SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace trainyard {

// The text with & < > " and ' as entities and control characters as blanks.
std::string markup_text(std::string_view text);
// The same, but line feeds stay.
std::string markup_lines(std::string_view text);

}  // namespace trainyard
