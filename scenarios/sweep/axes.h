// The values that an axis of a sweep takes: listed, spaced in a range (by equal steps or equal
// factors), or drawn from a range; and a CSV file of overrides, which is kept as text and parsed
// one line at a time to save memory.
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
  std::string text;  // the value as JSON; empty: the scenario's own value
};

// A range of numbers, or of quantities in one unit.
struct SweepRange {
  double from = 0, to = 0;
  Scale scale = Scale::linear;
  bool whole = false;  // values are rounded to whole numbers
  std::string unit;    // empty: plain numbers

  SweepValue at(double fraction) const;  // fraction 0: from; 1: to
};

struct SweepAxis {
  std::vector<std::size_t> columns;  // indices in Sweep::columns
  // For each value of the axis, one entry for each column.
  std::vector<std::vector<SweepValue>> rows;
  std::optional<SweepRange> range;  // instead of `rows`, if points are drawn
};

// `first_column`: the index of this axis' first column in the sweep. `drawn`: points are drawn, so
// ranges stay ranges instead of becoming rows.
Expected<SweepAxis> axis_of(const AxisDocument& document, std::size_t first_column, bool drawn,
                            const Place& place);

class CsvOverrides {
 public:
  static Expected<CsvOverrides> parse(std::string text, const Place& place);

  const std::vector<std::string>& keys() const { return keys_; }
  std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  // Reads one value for each key. Requires: 0 <= row < rows().
  void read(std::int64_t row, std::vector<SweepValue>& values) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<std::size_t> rows_;  // where each begins in text_
};

}  // namespace trainyard
