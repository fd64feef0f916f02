// Networks whose attention and MLP read the same input instead of one the other's output (GPT-J,
// Wang 2021). Source: as scenarios/huggingface/architectures.h, the decoder layer's forward().
#pragma once

#include "scenarios/huggingface/architectures.h"
#include "scenarios/huggingface/config.h"

namespace trainyard {

// Falcon's; its first release with it had a model_type of its own instead of the key.
bool has_new_decoder(HuggingFaceConfig& config);

bool has_parallel_blocks(HuggingFaceConfig& config, const Architecture& architecture);

}  // namespace trainyard
