// Networks whose attention and MLP read the same input, instead of the MLP reading attention's
// output (GPT-J, Wang 2021). Source: as scenarios/huggingface/architectures.h, the decoder layer's
// forward().
#pragma once

#include "scenarios/huggingface/architectures.h"
#include "scenarios/huggingface/config.h"

namespace trainyard {

// Falcon's new decoder: by its key, or by the model_type of its first release, which has no key.
bool has_new_decoder(HuggingFaceConfig& config);

bool has_parallel_blocks(HuggingFaceConfig& config, const Architecture& architecture);

}  // namespace trainyard
