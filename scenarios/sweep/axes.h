// The values that an axis of a sweep takes: listed, a range, or drawn from a range; and a CSV file
// of overrides, read a line at a time so that its memory is its text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/fields/place.h"
#include "scenarios/sweep/sweep_document.h"

namespace trainyard {

struct SweepValue {
  Json value;
  std::string text;  // the value as JSON; empty: the key stays as the scenario has it
};

// Numbers or quantities of one unit from one end to the other.
struct SweepRange {
  double from = 0, to = 0;
  Scale scale = Scale::linear;
  bool whole = false;  // values are rounded to whole numbers
  std::string unit;    // empty: a number

  SweepValue at(double fraction) const;  // 0: from, 1: to
};

struct SweepAxis {
  std::vector<std::size_t> columns;           // of the sweep
  std::vector<std::vector<SweepValue>> rows;  // for each value of the axis one of each column
  std::optional<SweepRange> range;            // where points are drawn: instead of rows
};

// `first_column`: of the sweep, where this axis' columns begin. `drawn`: ranges stay ranges.
Expected<SweepAxis> axis_of(const AxisDocument& document, std::size_t first_column, bool drawn,
                            const Place& place);

class CsvOverrides {
 public:
  static Expected<CsvOverrides> parse(std::string text, const Place& place);

  const std::vector<std::string>& keys() const { return keys_; }
  std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  // Requires: 0 <= row < rows(). One value for each key.
  void read(std::int64_t row, std::vector<SweepValue>& values) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<std::size_t> rows_;  // where each begins
};

}  // namespace trainyard
