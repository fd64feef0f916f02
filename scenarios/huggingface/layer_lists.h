// Which layers attend with a window and which have experts: reads the many keys by which configs
// say this into the periods of a Transformer.
#pragma once

#include "model/workload/transformer.h"
#include "scenarios/huggingface/architectures.h"
#include "scenarios/huggingface/config.h"

namespace trainyard {

// Refuses layers that are not softmax attention (keys `layer_types` and `attn_type_list`).
void refuse_other_layers(HuggingFaceConfig& config, int layers);

// Reads sliding_window and full_attention_every. Requires: model.layers is read.
void read_window(HuggingFaceConfig& config, const Architecture& architecture, Transformer& model);

// Reads dense_layers and moe_every. Requires: model.layers and model.experts are read.
void read_moe_layers(HuggingFaceConfig& config, const Architecture& architecture,
                     Transformer& model);

}  // namespace trainyard
