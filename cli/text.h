// Text for people: numbers with the digits that matter, padding by what a terminal shows (UTF-8 and
// colour codes have no byte-for-column relation), wrapping. Independent of the locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/units.h"

namespace trainyard {

inline constexpr std::size_t kLineWidth = 100;  // columns that the output may take
inline constexpr int kBarWidth = 40;            // columns of the longest bar of a chart
inline constexpr double kGib = 1073741824.0;    // bytes

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

// "16,384".
std::string count(std::int64_t number);
// With `digits` significant digits, no exponent, thousands separated: "1,234", "13.75", "0.0421".
std::string number(double value, int digits = 4);
std::string signed_number(double value, int digits = 4);
// A fraction in percent with one decimal, without the sign "%": 0.4051 → "40.5".
std::string percent(double fraction);
std::string signed_percent(double fraction);

// With the unit that suits the size: "13.75 s", "842.0 ms", "72.10 GiB", "405.9 B".
std::string with_unit(Seconds time);
std::string with_unit(Bytes bytes);
std::string with_unit(Joules energy);
// Without a unit, for columns that name it: "13.75".
std::string milliseconds(Seconds time);
std::string short_scale(double count);

}  // namespace trainyard
