// Aligned tables with the unit of every column in the head, and horizontal bars.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/text/layout/style.h"

namespace trainyard {

enum class Align { left, right };

struct Column {
  std::string head;
  std::string unit;  // below the head; empty: none
  Align align = Align::right;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Requires: a cell for every column.
  void add_row(std::vector<std::string> cells);
  void add_rule();
  // Lines without trailing blanks, each with a newline. Columns stand two blanks apart.
  std::string render(const Style& style) const;

 private:
  using Row = std::vector<std::string>;  // empty: a rule
  std::vector<std::size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// A bar of `width` columns of which `fraction` is filled, to an eighth of a column; shorter bars
// are not padded. Requires: fraction is finite; it is cut to 0 … 1.
std::string bar(double fraction, int width);

}  // namespace trainyard
