#include "scenarios/json/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace trainyard {
namespace {

constexpr double kKibi = 1024.0;
constexpr std::size_t kLongestQuantity = 64;  // characters

constexpr std::array kByteUnits = {
    Unit{"B"},
    Unit{"kB", 3},
    Unit{"MB", 6},
    Unit{"GB", 9},
    Unit{"TB", 12},
    Unit{"PB", 15},
    Unit{"KiB", 0, kKibi},
    Unit{"MiB", 0, kKibi* kKibi},
    Unit{"GiB", 0, kKibi* kKibi* kKibi},
    Unit{"TiB", 0, kKibi* kKibi* kKibi* kKibi},
};
constexpr std::array kBandwidthUnits = {
    Unit{"B/s"},
    Unit{"kB/s", 3},
    Unit{"MB/s", 6},
    Unit{"GB/s", 9},
    Unit{"TB/s", 12},
    Unit{"MiB/s", 0, kKibi* kKibi, 1, true},
    Unit{"GiB/s", 0, kKibi* kKibi* kKibi, 1, true},
    Unit{"TiB/s", 0, kKibi* kKibi* kKibi* kKibi, 1, true},
    Unit{"Mbit/s", 6, 1, 8, true},
    Unit{"Gbit/s", 9, 1, 8, true},
    Unit{"Tbit/s", 12, 1, 8, true},
    Unit{"Mb/s", 6, 1, 8, true},
    Unit{"Gb/s", 9, 1, 8, true},
    Unit{"Tb/s", 12, 1, 8, true},
};
constexpr std::array kTimeUnits = {
    Unit{"ps", -12},
    Unit{"ns", -9},
    Unit{"us", -6},
    Unit{"ms", -3},
    Unit{"s"},
    Unit{"min", 0, 60},
    Unit{"h", 0, 3600},
    Unit{"days", 0, 86400},
    Unit{"day", 0, 86400, 1, true},
};
constexpr std::array kRateUnits = {
    Unit{"FLOP/s"},      Unit{"MFLOP/s", 6},  Unit{"GFLOP/s", 9},
    Unit{"TFLOP/s", 12}, Unit{"PFLOP/s", 15}, Unit{"EFLOP/s", 18},
};
constexpr std::array kPowerUnits = {Unit{"W"}, Unit{"kW", 3}, Unit{"MW", 6}};
constexpr std::array kPriceUnits = {Unit{"USD/h", 0, 1, 3600}, Unit{"USD/s"}};
constexpr std::array kCarbonUnits = {Unit{"gCO2/kWh", 0, 1, 3.6e6}, Unit{"gCO2/J"}};

// By Dimension. The ranges are generous, ten thousand times what exists, yet far from overflow.
constexpr std::array<DimensionRecord, 7> kRecords = {{
    {"memory", "80 GiB", kByteUnits, 1, 1e18},
    {"bandwidth", "450 GB/s", kBandwidthUnits, 1, 1e18},
    {"time", "2.5 us", kTimeUnits, 1e-12, 1e6 * 86400},
    {"computing rate", "989 TFLOP/s", kRateUnits, 1, 1e21},
    {"power", "700 W", kPowerUnits, 1e-3, 1e9},
    {"price", "2.99 USD/h", kPriceUnits, 0.001 / 3600, 1e6 / 3600},
    {"carbon intensity", "400 gCO2/kWh", kCarbonUnits, 0.001 / 3.6e6, 1e6 / 3.6e6},
}};

std::string unit_names(const DimensionRecord& record) {
  std::string names;
  for (const Unit& unit : record.units) {
    names += names.empty() ? "" : " ";
    names += unit.name;
  }
  return names;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Skips the character at `at` if it is one of `wanted`.
bool skip(std::string_view text, std::size_t& at, std::string_view wanted) {
  const bool found = at < text.size() && wanted.find(text[at]) != std::string_view::npos;
  at += found ? 1 : 0;
  return found;
}

// Length of the number at the start of `text`: digits[.digits][e[+-]digit[digit]]; 0: none.
std::size_t number_length(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&](std::size_t most) {
    const std::size_t first = at;
    while (at < text.size() && at - first < most && is_digit(text[at])) ++at;
    return at - first;
  };
  if (digits(text.size()) == 0) return 0;
  if (skip(text, at, ".") && digits(text.size()) == 0) return 0;
  if (skip(text, at, "eE")) {
    skip(text, at, "+-");
    if (digits(2) == 0) return 0;
  }
  return at;
}

const Unit* find_unit(const DimensionRecord& record, std::string_view name) {
  const auto found = std::ranges::find(record.units, name, &Unit::name);
  return found == record.units.end() ? nullptr : &*found;
}

// Adds the unit's power of ten to the number's exponent, so that a decimal is rounded only once:
// "133.2 GB/s" is the same double as 133.2e9.
std::optional<double> scaled(std::string_view number, const Unit& unit) {
  const std::size_t e = number.find_first_of("eE");
  int exponent = 0;
  if (e != std::string_view::npos) {
    const std::size_t digits = e + (number[e + 1] == '+' ? 2 : 1);
    std::from_chars(number.data() + digits, number.data() + number.size(), exponent);
  }
  const std::string text = fmt::format("{}e{}", number.substr(0, e), exponent + unit.exponent);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value * unit.multiplier / unit.divisor;
}

// The value in base units; none unless `text` is number, space, unit.
std::optional<double> split_and_scale(std::string_view text, const DimensionRecord& record) {
  if (text.size() > kLongestQuantity) return std::nullopt;
  const std::size_t length = number_length(text);
  if (length == 0 || length >= text.size() || text[length] != ' ') return std::nullopt;
  const Unit* unit = find_unit(record, text.substr(length + 1));
  if (unit == nullptr) return std::nullopt;
  return scaled(text.substr(0, length), *unit);
}

struct Written {
  std::string text;        // empty: it does not read back
  bool plain = false;      // a number from 1 to a million
  std::size_t length = 0;  // longer beyond a thousand, where a larger unit reads better
};

// Uses the shortest number that reads back, because a quotient often misses a decimal by its last
// bit.
Written written_in(const Unit& unit, double base_units, const DimensionRecord& record) {
  constexpr std::size_t kThousands = 3;
  const double ten = std::pow(10.0, std::abs(unit.exponent));
  const double number =
      (unit.exponent < 0 ? base_units * ten : base_units / ten) * unit.divisor / unit.multiplier;
  for (const int digits : {15, 16, 17}) {
    std::string text = fmt::format("{:.{}g} {}", number, digits, unit.name);
    if (split_and_scale(text, record) != base_units) continue;
    const std::size_t length = text.size() + (number >= 1000 ? kThousands : 0);
    return {std::move(text), base_units == 0 || (number >= 1 && number <= 1e6), length};
  }
  return {};
}

}  // namespace

const DimensionRecord& record_of(Dimension dimension) {
  return kRecords[static_cast<std::size_t>(dimension)];
}

Expected<double> parse_quantity(std::string_view text, Dimension dimension, bool zero_allowed) {
  const DimensionRecord& record = record_of(dimension);
  const std::optional<double> value = split_and_scale(text, record);
  if (!value) {
    return failure("",
                   fmt::format("a {} as a number, a space and a unit, such as \"{}\" (units: {})",
                               record.name, record.example, unit_names(record)));
  }
  if (zero_allowed && *value == 0) return 0.0;
  if (*value < record.least || *value > record.most) {
    return failure(
        "",
        fmt::format("a {} from {} to {}{}", record.name, format_quantity(record.least, dimension),
                    format_quantity(record.most, dimension), zero_allowed ? ", or zero" : ""));
  }
  return *value;
}

std::optional<double> quantity_of_some_kind(std::string_view text) {
  for (std::size_t i = 0; i < kRecords.size(); ++i) {
    if (const auto value = parse_quantity(text, static_cast<Dimension>(i), true)) return *value;
  }
  return std::nullopt;
}

std::string format_quantity(double base_units, Dimension dimension) {
  const DimensionRecord& record = record_of(dimension);
  Written best;
  for (const Unit& unit : record.units) {
    if (unit.read_only) continue;
    Written written = written_in(unit, base_units, record);
    if (written.text.empty()) continue;
    const bool plainer = written.plain && !best.plain;
    const bool better = written.plain == best.plain && written.length < best.length;
    if (best.text.empty() || plainer || better) best = std::move(written);
  }
  return best.text;
}

std::string quantity_pattern(Dimension dimension, bool zero_allowed) {
  std::string units;
  for (const Unit& unit : record_of(dimension).units) {
    units += units.empty() ? "" : "|";
    units += unit.name;
  }
  return fmt::format("^{}[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]{{1,2}})? ({})$",
                     zero_allowed ? "" : "(?=[0-9.]*[1-9])", units);
}

}  // namespace trainyard
