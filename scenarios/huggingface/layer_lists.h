// Which layers attend with a window and which are mixtures of experts, as the many keys of configs
// say it, brought to the periods that Transformer has.
#pragma once

#include "model/workload/transformer.h"
#include "scenarios/huggingface/architectures.h"
#include "scenarios/huggingface/config.h"

namespace trainyard {

// Refuses layers that are no softmax attention: `layer_types` and `attn_type_list`.
void refuse_other_layers(HuggingFaceConfig& config, int layers);

// sliding_window and full_attention_every. Requires: model.layers is read.
void read_window(HuggingFaceConfig& config, const Architecture& architecture, Transformer& model);

// dense_layers and moe_every. Requires: model.layers and model.experts are read.
void read_moe_layers(HuggingFaceConfig& config, const Architecture& architecture,
                     Transformer& model);

}  // namespace trainyard
