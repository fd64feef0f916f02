#include "cli/text/layout/table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

#include "cli/text/layout/columns.h"

namespace trainyard {
namespace {

constexpr std::string_view kGap = "  ";

std::string repeat(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) {
    result += text;
  }
  return result;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size() && "a cell for every column");
  rows_.push_back(std::move(cells));
}

void Table::add_rule() { rows_.emplace_back(); }

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) {
    widths.push_back(std::max(display_width(column.head), display_width(column.unit)));
  }
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  return widths;
}

std::string Table::render(const Style& style) const {
  const std::vector<std::size_t> width = widths();
  const auto line = [&](auto&& cell) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const bool right = columns_[i].align == Align::right;
      text += i == 0 ? "" : kGap;
      text += right ? pad_left(cell(i), width[i]) : pad_right(cell(i), width[i]);
    }
    return without_trailing_blanks(text);
  };
  const std::size_t gaps = kGap.size() * (columns_.size() - 1);
  const std::string rule =
      style.faint(repeat("─", std::accumulate(width.begin(), width.end(), gaps))) + '\n';
  std::string text = line([&](std::size_t i) { return style.strong(columns_[i].head); });
  if (std::any_of(columns_.begin(), columns_.end(),
                  [](const Column& column) { return !column.unit.empty(); })) {
    text += line([&](std::size_t i) { return style.faint(columns_[i].unit); });
  }
  text += rule;
  for (const Row& row : rows_) {
    text += row.empty() ? rule : line([&](std::size_t i) { return row[i]; });
  }
  return text;
}

std::string bar(double fraction, int width) {
  if (!(fraction > 0)) return {};  // also false for NaN
  constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(
      std::lround(std::clamp(fraction, 0.0, 1.0) * 8 * static_cast<double>(width)));
  return repeat("█", eighths / 8).append(kEighths[eighths % 8]);
}

}  // namespace trainyard
