// Networks small enough to be run by the interpreter, and every plan of them.
#pragma once

#include <string>

#include "executor/setting.h"
#include "model/plan/plan.h"

namespace trainyard {

// Four layers, four heads. The GPT has biases, LayerNorm, GELU, learned positions; the Llama
// RMSNorm, SwiGLU, rotary embedding, two KV heads. Both vocabularies need padding for four ranks.
Transformer tiny_gpt(bool tied);
Transformer tiny_llama(bool tied);
// The Llama with four routed experts, two a token, in every second layer.
Transformer tiny_moe();
// The Llama with latent attention: queries of rank 6, keys of 2 + 4 elements, values of 5.
Transformer tiny_latent();
Training tiny_training();

// The plan of `request` on exactly as many devices as it needs; the test fails where it is refused.
Setting tiny_setting(const Transformer& model, const PlanRequest& request);
Setting tiny_setting(const Transformer& model, const Training& training,
                     const PlanRequest& request);

}  // namespace trainyard
