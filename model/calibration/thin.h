// Picks some of many rows, the same ones every time. It does not take every n-th row: in a table
// that is ordered by its columns a stride may hit one value of a column only.
#pragma once

#include <cstdint>
#include <vector>

namespace trainyard {

// About `most` of the rows, in their order; all of them where there are no more.
template <typename Row>
std::vector<Row> thinned(const std::vector<Row>& rows, std::size_t most) {
  if (rows.size() <= most) return rows;
  const double share = static_cast<double>(most) / static_cast<double>(rows.size());
  std::vector<Row> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto mixed = static_cast<std::uint32_t>(i * 2654435761U);  // Knuth's multiplicative hash
    if (mixed < share * 4294967296.0) kept.push_back(rows[i]);
  }
  return kept;
}

}  // namespace trainyard
