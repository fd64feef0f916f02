// Quantities as documents write them: a number, one space, a unit ("80 GiB", "400 Gbit/s",
// "2.5 us"). Case counts; GB is 10^9 and GiB 2^30 bytes; b is a bit and B a byte. Independent of
// the locale.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/expected.h"

namespace trainyard {

enum class Dimension {
  bytes,
  bytes_per_second,
  seconds,
  flops_per_second,
  watts,
  dollars_per_second,
  carbon_intensity,  // base unit: g of CO2 a joule
};

// One unit is 10^exponent · multiplier / divisor base units, the latter two whole numbers.
struct Unit {
  std::string_view name;
  int exponent = 0;
  double multiplier = 1;
  double divisor = 1;
  bool read_only = false;  // never written: another says the same
};

struct DimensionRecord {
  std::string_view name;     // "bandwidth"
  std::string_view example;  // "450 GB/s"
  std::span<const Unit> units;
  double least = 0, most = 0;  // base units: beyond them a value is a mistake
};
const DimensionRecord& record_of(Dimension dimension);

// In base units. `zero_allowed`: else the least positive value is the record's.
Expected<double> parse_quantity(std::string_view text, Dimension dimension, bool zero_allowed);

// Of whichever dimension has its unit, in base units; nothing: it is no quantity.
std::optional<double> quantity_of_some_kind(std::string_view text);

// The text that parse_quantity reads back to the same double, in the unit in which it is short and,
// where it can be, from 1 to 1000; bandwidths in bytes.
std::string format_quantity(double base_units, Dimension dimension);

// The grammar of parse_quantity as a regular expression (ECMA-262, for the JSON Schema); the range
// of the value is beyond it.
std::string quantity_pattern(Dimension dimension, bool zero_allowed);

}  // namespace trainyard
