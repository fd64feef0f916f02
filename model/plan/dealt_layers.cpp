#include "model/plan/dealt_layers.h"

#include <algorithm>
#include <cstddef>

namespace trainyard {

int dealt_layers(std::span<const int> chunks, int chunk, int count) {
  const auto own = static_cast<std::size_t>(chunk);
  int dealt = 0;
  for (int left = count; dealt < chunks[own]; ++dealt) {
    int in_turn = 0, before = 0;
    for (std::size_t other = 0; other < chunks.size(); ++other) {
      if (chunks[other] <= dealt) continue;
      ++in_turn;
      if (other < own) ++before;
    }
    if (left <= before) break;
    left -= in_turn;
  }
  return dealt;
}

int layers_behind(int smallest, int chunks, int count) {
  const int most_dealt = (count + chunks - 1) / chunks;
  return std::max(0, smallest - most_dealt);
}

}  // namespace trainyard
