// Where a condition that stays true once it is true becomes true.
#pragma once

namespace trainyard {

// The first of `first` … `end` − 1 from which on `holds` does; `end` where none does.
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
