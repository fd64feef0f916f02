// Text inside SVG and HTML, whoever wrote it.
#pragma once

#include <string>
#include <string_view>

namespace trainyard {

// & < > " and ' as entities, control characters as blanks.
std::string markup_text(std::string_view text);
// The same, but line feeds stay.
std::string markup_lines(std::string_view text);

}  // namespace trainyard
