#include "scenarios/text/readable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/cost/reliability_settings.h"

namespace trainyard {
namespace {

// Puts commas between thousands of a number, which may have a sign and a fraction.
std::string separate_thousands(std::string text) {
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  const std::size_t point = std::min(text.find('.'), text.size());
  for (std::size_t i = point; i > first + 3; i -= 3) {
    text.insert(i - 3, ",");
  }
  return text;
}

// `value` with `digits` significant digits. Requires: value > 0.
double rounded_to(double value, int digits) {
  const double magnitude = std::floor(std::log10(value));
  const double step = std::pow(10.0, magnitude - digits + 1);
  return std::round(value / step) * step;
}

struct ReadableUnit {
  double size;
  std::string_view name;
};

// Formats in the largest unit that fits; the last unit takes all smaller values.
template <std::size_t N>
std::string in_unit(double value, const std::array<ReadableUnit, N>& units) {
  const auto fits = [value](const ReadableUnit& unit) {
    return std::abs(value) >= 0.99995 * unit.size;
  };
  const auto found = std::find_if(units.begin(), units.end(), fits);
  const ReadableUnit& unit = found == units.end() || value == 0 ? units.back() : *found;
  return fmt::format("{} {}", number(value / unit.size), unit.name);
}

}  // namespace

std::string count(std::int64_t number) { return separate_thousands(fmt::format("{}", number)); }

std::string counted(std::int64_t number, std::string_view noun, std::string_view several) {
  if (number == 1) return fmt::format("1 {}", noun);
  return several.empty() ? fmt::format("{} {}s", count(number), noun)
                         : fmt::format("{} {}", count(number), several);
}

std::string number(double value, int digits) {
  if (value == 0) {
    return "0";
  }
  if (!std::isfinite(value)) {
    return "–";
  }
  // Rounding may carry into another digit: 9.99996 is 10.00, not 10.000.
  const double rounded = rounded_to(std::abs(value), digits) * (1 + 1e-12);
  const int magnitude = static_cast<int>(std::floor(std::log10(rounded)));
  const int decimals = std::clamp(digits - 1 - magnitude, 0, 9);
  return separate_thousands(fmt::format("{:.{}f}", value, decimals));
}

std::string signed_number(double value, int digits) {
  return (value > 0 ? "+" : "") + number(value, digits);
}

std::string percent(double fraction) { return fmt::format("{:.1f}", 100 * fraction); }

std::string signed_percent(double fraction) {
  std::string text = fmt::format("{:+.1f}", 100 * fraction);
  return text == "+0.0" || text == "-0.0" ? "0.0" : text;  // no sign if it rounds to zero
}

std::string with_unit(Seconds time) {
  constexpr std::array<ReadableUnit, 3> kUnits = {{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}};
  return in_unit(time.value(), kUnits);
}

std::string with_unit(Bytes bytes) {
  constexpr std::array<ReadableUnit, 4> kUnits = {
      {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}}};
  return in_unit(bytes.value(), kUnits);
}

std::string with_unit(Joules energy) {
  constexpr std::array<ReadableUnit, 3> kUnits = {{{3.6e9, "MWh"}, {3.6e6, "kWh"}, {3.6e3, "Wh"}}};
  return in_unit(energy.value(), kUnits);
}

std::string duration(Seconds time) {
  if (time >= kDay) return fmt::format("{} days", number(time / kDay));
  if (time >= kHour) return fmt::format("{} h", number(time / kHour));
  if (time >= kMinute) return fmt::format("{} min", number(time / kMinute));
  return with_unit(time);
}

std::string milliseconds(Seconds time) { return fmt::format("{:.2f}", 1e3 * time.value()); }

std::string short_scale(double count) {
  constexpr std::array<ReadableUnit, 4> kUnits = {
      {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}}};
  return count < 1e3 ? number(count) : in_unit(count, kUnits);
}

}  // namespace trainyard
