// Text for a terminal: padding and wrapping by the columns that are visible, which differ from
// bytes because of UTF-8 and colour codes. Numbers are formatted by scenarios/text/readable.h.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/text/readable.h"

namespace trainyard {

inline constexpr std::size_t kLineWidth = 100;  // columns that the output may take
inline constexpr int kBarWidth = 40;            // columns of the longest bar of a chart

// Columns that a text takes on a terminal: its code points without colour codes.
std::size_t display_width(std::string_view text);

std::string pad_left(std::string_view text, std::size_t width);   // right-aligned
std::string pad_right(std::string_view text, std::size_t width);  // left-aligned
// The text in at most `width` columns; a part left out in the middle becomes "…". Requires: no
// colour codes.
std::string elide(std::string_view text, std::size_t width);
// Breaks words into lines of at most kLineWidth columns, each ended by a newline. The first line
// continues a line that is already `indent` columns long; the others are indented by as much. A
// number stays on one line with the word after it, its unit.
std::string wrap(std::string_view text, std::size_t indent = 0);

}  // namespace trainyard
