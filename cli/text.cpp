#include "cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace trainyard {
namespace {

// Length in bytes of the colour code that starts at `text`; 0: none does.
std::size_t colour_code(std::string_view text) {
  if (!text.starts_with("\x1b[")) {
    return 0;
  }
  const std::size_t end = text.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// The first `columns` code points.
std::string_view prefix(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    seen += continues_code_point(text[end]) ? 0 : 1;
    if (seen > columns) {
      break;
    }
  }
  return text.substr(0, end);
}

std::string_view suffix(std::string_view text, std::size_t columns) {
  const std::size_t width = display_width(text);
  return columns >= width ? text : text.substr(prefix(text, width - columns).size());
}

// Commas between thousands in a string of digits, sign and fraction allowed.
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

// The first word, and those that must stand on the same line.
std::string_view unbroken_prefix(std::string_view text) {
  std::size_t end = text.find(' ');
  while (end < text.size() && end > 0 && text[end - 1] >= '0' && text[end - 1] <= '9') {
    end = text.find(' ', end + 1);
  }
  return text.substr(0, end);
}

struct TextUnit {
  double size;
  std::string_view name;
};

// Units from the largest; the last one takes what is smaller still.
template <std::size_t N>
std::string in_unit(double value, const std::array<TextUnit, N>& units) {
  const auto fits = [value](const TextUnit& unit) {
    return std::abs(value) >= 0.99995 * unit.size;
  };
  const auto found = std::find_if(units.begin(), units.end(), fits);
  const TextUnit& unit = found == units.end() || value == 0 ? units.back() : *found;
  return fmt::format("{} {}", number(value / unit.size), unit.name);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t code = colour_code(text.substr(i)); code > 0) {
      i += code;
      continue;
    }
    width += continues_code_point(text[i]) ? 0 : 1;
    ++i;
  }
  return width;
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t own = display_width(text);
  return std::string(width > own ? width - own : 0, ' ').append(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
  const std::size_t own = display_width(text);
  return std::string(text).append(width > own ? width - own : 0, ' ');
}

std::string elide(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  const std::size_t head = (width - 1) / 2;
  return fmt::format("{}…{}", prefix(text, head), suffix(text, width - 1 - head));
}

std::string wrap(std::string_view text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = unbroken_prefix(text);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t width = display_width(word);
    if (column > indent && column + 1 + width > kLineWidth) {
      result.append("\n").append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += width;
  }
  return result + '\n';
}

std::string count(std::int64_t number) { return separate_thousands(fmt::format("{}", number)); }

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

std::string signed_percent(double fraction) { return fmt::format("{:+.1f}", 100 * fraction); }

std::string with_unit(Seconds time) {
  constexpr std::array<TextUnit, 3> kUnits = {{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}};
  return in_unit(time.value(), kUnits);
}

std::string with_unit(Bytes bytes) {
  constexpr double kKibi = 1024;
  constexpr std::array<TextUnit, 4> kUnits = {{{kKibi * kKibi * kKibi * kKibi, "TiB"},
                                               {kKibi * kKibi * kKibi, "GiB"},
                                               {kKibi * kKibi, "MiB"},
                                               {kKibi, "KiB"}}};
  return in_unit(bytes.value(), kUnits);
}

std::string with_unit(Joules energy) {
  constexpr std::array<TextUnit, 3> kUnits = {{{3.6e9, "MWh"}, {3.6e6, "kWh"}, {3.6e3, "Wh"}}};
  return in_unit(energy.value(), kUnits);
}

std::string milliseconds(Seconds time) { return fmt::format("{:.2f}", 1e3 * time.value()); }

std::string short_scale(double count) {
  constexpr std::array<TextUnit, 4> kUnits = {{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}}};
  return count < 1e3 ? number(count) : in_unit(count, kUnits);
}

}  // namespace trainyard
