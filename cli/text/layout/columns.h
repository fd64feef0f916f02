// Text for a terminal: padding by what it shows (UTF-8 and colour codes have no byte-for-column
// relation), wrapping. Numbers are those of scenarios/text/readable.h.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/text/readable.h"

namespace trainyard {

inline constexpr std::size_t kLineWidth = 100;  // columns that the output may take
inline constexpr int kBarWidth = 40;            // columns of the longest bar of a chart

// Columns on a terminal: code points without colour codes.
std::size_t display_width(std::string_view text);

std::string pad_left(std::string_view text, std::size_t width);   // right-aligned
std::string pad_right(std::string_view text, std::size_t width);  // left-aligned
// At most `width` columns; what is left out in the middle becomes "…". Requires: no colour codes.
std::string elide(std::string_view text, std::size_t width);
// Words in lines of kLineWidth columns at most, each with a newline. The first line continues one
// that is `indent` columns long; the others are indented as much. A number keeps the word after it,
// its unit.
std::string wrap(std::string_view text, std::size_t indent = 0);

}  // namespace trainyard
