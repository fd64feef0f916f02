// Binary search for the first number at which a condition holds. It assumes that the condition is
// monotone: once it holds, it holds for all larger numbers.
#pragma once

namespace trainyard {

// The smallest number in [first, end) for which `holds` is true; `end` if it is true for none.
template <typename Holds>
int first_where(int first, int end, Holds&& holds) {
  while (first < end) {
    const int middle = first + (end - first) / 2;
    if (holds(middle)) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

}  // namespace trainyard
