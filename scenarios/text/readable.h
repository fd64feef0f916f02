// Numbers and quantities as people read them, in the terminal and in the window: only significant
// digits, thousands separated, a unit that suits the size. Independent of the locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/units.h"

namespace trainyard {

// "16,384".
std::string count(std::int64_t number);
// With its noun: "1 token", "16,384 tokens". `several`: the plural, if it is not the noun with an
// s.
std::string counted(std::int64_t number, std::string_view noun, std::string_view several = {});
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
// A long time in the largest unit that gives at least 1: "9.3 days", "3.1 h", "18.6 min", "2.8 s".
std::string duration(Seconds time);
// Without a unit, for columns that name it: "13.75".
std::string milliseconds(Seconds time);
std::string short_scale(double count);

}  // namespace trainyard
