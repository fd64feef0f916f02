// Which layers of a stage are recomputed in full when not all of them are: how many of each chunk.
// The layers are dealt one at a time to the chunks in turn; a chunk that has no layer left is
// skipped. Example: 5 layers over chunks of 4 and 1 are 4 and 1; over chunks of 4 and 4 they are 3
// and 2. If the number of chunks divides the count, every chunk recomputes the same number of its
// first layers, as in Megatron-Core's recompute_method "block".
#pragma once

#include <span>

namespace trainyard {

// Writes to `dealt` how many of the `count` layers each chunk gets; `chunks` has the layers of
// each. Requires: dealt.size() == chunks.size() >= 1.
void deal_layers(std::span<const int> chunks, int count, std::span<int> dealt);

// A lower bound of the layers that follow the recomputed ones in a chunk, when `count` layers are
// dealt to `chunks` chunks and the smallest of these has `smallest` layers.
int layers_behind(int smallest, int chunks, int count);

}  // namespace trainyard
