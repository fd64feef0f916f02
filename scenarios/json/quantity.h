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

// One unit is 10^exponent · multiplier / divisor base units; multiplier and divisor are whole
// numbers.
struct Unit {
  std::string_view name;
  int exponent = 0;
  double multiplier = 1;
  double divisor = 1;
  bool read_only = false;  // read but never written: another unit is equal
};

struct DimensionRecord {
  std::string_view name;     // "bandwidth"
  std::string_view example;  // "450 GB/s"
  std::span<const Unit> units;
  double least = 0, most = 0;  // in base units; values outside are taken for mistakes
};
const DimensionRecord& record_of(Dimension dimension);

// The value in base units; it must be in the record's range, or zero if `zero_allowed`.
Expected<double> parse_quantity(std::string_view text, Dimension dimension, bool zero_allowed);

// The value in base units, of whichever dimension has its unit; none: the text is no quantity.
std::optional<double> quantity_of_some_kind(std::string_view text);

// Text that parse_quantity reads back to the same double, in the unit that makes it short and, if
// possible, a number from 1 to 1000. Bandwidths are in bytes.
std::string format_quantity(double base_units, Dimension dimension);

// The grammar of parse_quantity as a regular expression (ECMA-262, for the JSON Schema); it does
// not check the range of the value.
std::string quantity_pattern(Dimension dimension, bool zero_allowed);

}  // namespace trainyard
