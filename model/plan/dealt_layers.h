// The layers that a stage repeats in full, chunk by chunk: one of each chunk in turn, as long as it
// has any. A multiple of the chunks' number is the same number of the first layers of each, as
// Megatron's block method has it.
#pragma once

#include <span>

namespace trainyard {

// How many of `count` layers fall to each chunk, where the chunks of a stage have so many.
// Requires: as many in `dealt` as there are chunks, one at least.
void deal_layers(std::span<const int> chunks, int count, std::span<int> dealt);

// At least so many layers lie behind those of `count` in each chunk that has some of them, where
// the smallest of so many chunks has so many layers.
int layers_behind(int smallest, int chunks, int count);

}  // namespace trainyard
