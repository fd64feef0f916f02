// The median: half of the numbers are below it. For an even count it is the mean of the two middle
// numbers.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace trainyard {

// Requires: not empty.
inline double median(std::span<const double> values) {
  assert(!values.empty() && "no number is in the middle of none");
  std::vector<double> list(values.begin(), values.end());
  const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
  std::nth_element(list.begin(), middle, list.end());
  if (list.size() % 2 == 1) return *middle;
  return std::midpoint(*std::max_element(list.begin(), middle), *middle);
}

}  // namespace trainyard
