#include "model/plan/dealt_layers.h"

#include <algorithm>
#include <cstddef>

namespace trainyard {

void deal_layers(std::span<const int> chunks, int count, std::span<int> dealt) {
  const auto all = static_cast<int>(chunks.size());
  const int of_each = std::min(*std::ranges::min_element(chunks), count / all);
  std::ranges::fill(dealt, of_each);
  int left = count - of_each * all;
  for (int before = left + 1; left > 0 && left < before;) {
    before = left;
    for (std::size_t chunk = 0; chunk < chunks.size() && left > 0; ++chunk) {
      if (dealt[chunk] == chunks[chunk]) continue;
      ++dealt[chunk];
      --left;
    }
  }
}

int layers_behind(int smallest, int chunks, int count) {
  const int most_dealt = (count + chunks - 1) / chunks;
  return std::max(0, smallest - most_dealt);
}

}  // namespace trainyard
