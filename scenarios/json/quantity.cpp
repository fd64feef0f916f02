#include "scenarios/json/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace trainyard {
namespace {

constexpr double kKibi = 1024.0;
constexpr std::size_t kLongestQuantity = 64;  // characters

constexpr std::array kByteUnits = {
    Unit{"B"},
    Unit{"kB", 1e3},
    Unit{"MB", 1e6},
    Unit{"GB", 1e9},
    Unit{"TB", 1e12},
    Unit{"PB", 1e15},
    Unit{"KiB", kKibi},
    Unit{"MiB", kKibi* kKibi},
    Unit{"GiB", kKibi* kKibi* kKibi},
    Unit{"TiB", kKibi* kKibi* kKibi* kKibi},
};
constexpr std::array kBandwidthUnits = {
    Unit{"B/s"},
    Unit{"kB/s", 1e3},
    Unit{"MB/s", 1e6},
    Unit{"GB/s", 1e9},
    Unit{"TB/s", 1e12},
    Unit{"MiB/s", kKibi* kKibi},
    Unit{"GiB/s", kKibi* kKibi* kKibi},
    Unit{"TiB/s", kKibi* kKibi* kKibi* kKibi},
    Unit{"Mbit/s", 1e6, 8},
    Unit{"Gbit/s", 1e9, 8},
    Unit{"Tbit/s", 1e12, 8},
    Unit{"Mb/s", 1e6, 8},
    Unit{"Gb/s", 1e9, 8},
    Unit{"Tb/s", 1e12, 8},
};
constexpr std::array kTimeUnits = {
    Unit{"ps", 1, 1e12}, Unit{"ns", 1, 1e9},  Unit{"us", 1, 1e6},
    Unit{"ms", 1, 1e3},  Unit{"s"},           Unit{"min", 60},
    Unit{"h", 3600},     Unit{"days", 86400}, Unit{"day", 86400, 1, true},
};
constexpr std::array kRateUnits = {
    Unit{"FLOP/s"},        Unit{"MFLOP/s", 1e6},  Unit{"GFLOP/s", 1e9},
    Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15}, Unit{"EFLOP/s", 1e18},
};
constexpr std::array kPowerUnits = {Unit{"W"}, Unit{"kW", 1e3}, Unit{"MW", 1e6}};
constexpr std::array kPriceUnits = {Unit{"USD/h", 1, 3600}, Unit{"USD/s"}};
constexpr std::array kCarbonUnits = {Unit{"gCO2/kWh", 1, 3.6e6}, Unit{"gCO2/J"}};

// By Dimension. The ends are generous: ten thousand times what exists, and far from overflow.
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

// Steps over the character at `at` if it is one of `wanted`.
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

// Base units, or nothing when `text` is not number, space, unit.
std::optional<double> split_and_scale(std::string_view text, const DimensionRecord& record) {
  if (text.size() > kLongestQuantity) return std::nullopt;
  const std::size_t length = number_length(text);
  if (length == 0 || length >= text.size() || text[length] != ' ') return std::nullopt;
  const Unit* unit = find_unit(record, text.substr(length + 1));
  if (unit == nullptr) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + length, number);
  if (error != std::errc() || end != text.data() + length) return std::nullopt;
  return number * unit->multiplier / unit->divisor;
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
  std::string best;
  bool best_is_plain = false;  // a number from 1 to a million
  for (const Unit& unit : record.units) {
    if (unit.alias) continue;
    const double number = base_units * unit.divisor / unit.multiplier;
    const bool plain = base_units == 0 || (number >= 1 && number <= 1e6);
    std::string text = fmt::format("{} {}", number, unit.name);
    if (split_and_scale(text, record) != base_units) continue;
    const bool shorter = text.size() < best.size();
    if (best.empty() || (plain && !best_is_plain) || (plain == best_is_plain && shorter)) {
      best = std::move(text);
      best_is_plain = plain;
    }
  }
  return best;
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
