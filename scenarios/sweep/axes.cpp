#include "scenarios/sweep/axes.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>

namespace trainyard {
namespace {

SweepValue valued(Json value) {
  std::string text = json_line(value);
  return {std::move(value), std::move(text)};
}

struct End {
  double number = 0;
  bool whole = false;
  std::string unit;
};

Expected<End> end_of(const Json& value, const Place& place) {
  if (value.is_number()) return End{value.get<double>(), value.is_number_integer(), ""};
  const auto& text = value.get_ref<const std::string&>();
  End end;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), end.number);
  const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (error != std::errc() || unit.size() < 2 || unit.front() != ' ') {
    return place.error(
        fmt::format("found {}; allowed: a number, or one with a unit", shown(value)));
  }
  end.unit = unit.substr(1);
  return end;
}

Expected<SweepRange> range_of(const AxisDocument& axis, const Place& place) {
  if (axis.from.is_null() || axis.to.is_null()) {
    return place.error(
        "found neither values nor both ends of a range; allowed: \"values\", or "
        "\"from\" and \"to\"");
  }
  const auto from = end_of(axis.from, place / "from");
  if (!from) return tl::unexpected(from.error());
  const auto to = end_of(axis.to, place / "to");
  if (!to) return tl::unexpected(to.error());
  if (from->unit != to->unit) {
    return (place / "to")
        .error(fmt::format("found {}; allowed: the unit of \"from\", {}", shown(axis.to),
                           shown(axis.from)));
  }
  if (axis.scale == Scale::geometric && (from->number <= 0 || to->number <= 0)) {
    return (place / "from")
        .error(
            "found a range that is not positive; allowed with scale "
            "\"geometric\": ends above 0");
  }
  return SweepRange{from->number, to->number, axis.scale, from->whole && to->whole, from->unit};
}

// The values of one key.
Expected<std::vector<SweepValue>> values_of(const AxisDocument& axis, const Place& place) {
  std::vector<SweepValue> values;
  if (!axis.values.empty()) {
    for (const Json& value : axis.values) values.push_back(valued(value));
    return values;
  }
  const auto range = range_of(axis, place);
  if (!range) return tl::unexpected(range.error());
  if (axis.steps == 0) return place.error("found no \"steps\"; allowed: the number of values");
  for (int i = 0; i < axis.steps; ++i) {
    SweepValue value = range->at(axis.steps == 1 ? 0 : static_cast<double>(i) / (axis.steps - 1));
    if (values.empty() || values.back().text != value.text) values.push_back(std::move(value));
  }
  return values;
}

Expected<void> check_axis(const AxisDocument& axis, const Place& place) {
  if (axis.key.empty()) return place.error("found no \"key\"; allowed: a key of the scenario");
  if (!axis.values.empty() && !(axis.from.is_null() && axis.to.is_null() && axis.steps == 0)) {
    return place.error("found \"values\" and a range; allowed: one of them");
  }
  return {};
}

Expected<void> add_column(const AxisDocument& document, SweepAxis& axis, const Place& place) {
  if (auto fits = check_axis(document, place); !fits) return fits;
  auto values = values_of(document, place);
  if (!values) return tl::unexpected(values.error());
  if (axis.columns.empty()) {
    axis.rows.resize(values->size());
  } else if (axis.rows.size() != values->size()) {
    return place.error(fmt::format("found {} values; allowed: {}, as many as its neighbours",
                                   values->size(), axis.rows.size()));
  }
  for (std::size_t i = 0; i < values->size(); ++i) {
    axis.rows[i].push_back(std::move((*values)[i]));
  }
  return {};
}

Expected<SweepAxis> zipped(const AxisDocument& document, std::size_t first_column,
                           const Place& place) {
  if (!document.key.empty() || !document.values.empty() || !document.from.is_null()) {
    return place.error("found \"zip\" beside other keys; allowed: \"zip\" alone");
  }
  SweepAxis axis;
  for (std::size_t i = 0; i < document.zip.size(); ++i) {
    if (auto done = add_column(document.zip[i], axis, place / "zip" / i); !done) {
      return tl::unexpected(done.error());
    }
    axis.columns.push_back(first_column + i);
  }
  return axis;
}

// Takes one cell off a CSV line (RFC 4180); afterwards `at` is on the comma or the line's end.
std::string take_cell(std::string_view text, std::size_t& at) {
  std::string cell;
  const bool quoted = at < text.size() && text[at] == '"';
  if (!quoted) {
    const std::size_t end = std::min(text.find_first_of(",\r\n", at), text.size());
    cell = text.substr(at, end - at);
    at = end;
    return cell;
  }
  for (++at; at < text.size(); ++at) {
    const bool twice = text[at] == '"' && at + 1 < text.size() && text[at + 1] == '"';
    if (text[at] == '"' && !twice) break;
    if (twice) ++at;
    cell += text[at];
  }
  at = std::min(text.find_first_of(",\r\n", at), text.size());
  return cell;
}

// Takes a line off the text, with its line end.
std::vector<std::string> take_line(std::string_view text, std::size_t& at) {
  std::vector<std::string> cells = {take_cell(text, at)};
  while (at < text.size() && text[at] == ',') cells.push_back(take_cell(text, ++at));
  if (at < text.size() && text[at] == '\r') ++at;
  if (at < text.size() && text[at] == '\n') ++at;
  return cells;
}

// A JSON value, or text without quotes.
SweepValue value_of_cell(const std::string& cell) {
  if (cell.empty()) return {};
  auto value = parse_json(cell);
  return valued(value ? std::move(*value) : Json(cell));
}

// Rounded to twelve digits, so that √(200 · 800) is 400.
double without_noise(double value) {
  const std::string text = fmt::format("{:.12g}", value);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

SweepValue SweepRange::at(double fraction) const {
  double value =
      scale == Scale::linear ? from + (to - from) * fraction : from * std::pow(to / from, fraction);
  value = fraction == 1 ? to : without_noise(value);
  if (!unit.empty()) return valued(fmt::format("{} {}", value, unit));
  if (whole) return valued(static_cast<std::int64_t>(std::llround(value)));
  return valued(value);
}

Expected<SweepAxis> axis_of(const AxisDocument& document, std::size_t first_column, bool drawn,
                            const Place& place) {
  if (!document.zip.empty()) return zipped(document, first_column, place);
  if (auto fits = check_axis(document, place); !fits) return tl::unexpected(fits.error());
  SweepAxis axis;
  if (drawn && document.values.empty()) {
    auto range = range_of(document, place);
    if (!range) return tl::unexpected(range.error());
    axis.range = std::move(*range);
  } else if (auto done = add_column(document, axis, place); !done) {
    return tl::unexpected(done.error());
  }
  axis.columns = {first_column};
  return axis;
}

Expected<CsvOverrides> CsvOverrides::parse(std::string text, const Place& place) {
  CsvOverrides csv;
  csv.text_ = std::move(text);
  csv.text_.erase(csv.text_.find_last_not_of("\r\n") + 1);  // trailing empty lines are no points
  std::size_t at = 0;
  csv.keys_ = take_line(csv.text_, at);
  for (int line = 2; at < csv.text_.size(); ++line) {
    csv.rows_.push_back(at);
    const std::size_t cells = take_line(csv.text_, at).size();
    if (cells != csv.keys_.size()) {
      return place.error(fmt::format("found {} cells in line {}; allowed: {}, one of each key",
                                     cells, line, csv.keys_.size()));
    }
  }
  if (csv.rows_.empty()) return place.error("found no points; allowed: a head and a line a point");
  return csv;
}

void CsvOverrides::read(std::int64_t row, std::vector<SweepValue>& values) const {
  std::size_t at = rows_[static_cast<std::size_t>(row)];
  const std::vector<std::string> cells = take_line(text_, at);
  for (std::size_t i = 0; i < cells.size(); ++i) values[i] = value_of_cell(cells[i]);
}

}  // namespace trainyard
