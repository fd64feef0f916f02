// Networks small enough to be run by the interpreter, and settings that run any plan of them.
#pragma once

#include <string>

#include "executor/setting.h"
#include "model/plan/plan.h"

namespace trainyard {

// Networks of four layers and four heads. The GPT has biases, LayerNorm, GELU and learned
// positions; the Llama has RMSNorm, SwiGLU, rotary embedding and two KV heads. Both vocabularies
// (13) need padding for four ranks.
Transformer tiny_gpt(bool tied);
Transformer tiny_llama(bool tied);
// The Llama with four routed experts in every second layer; each token passes two of them.
Transformer tiny_moe();
// The Llama with latent attention: queries of rank 6, keys of 2 + 4 elements per head, values of 5.
Transformer tiny_latent();
Training tiny_training();

// The plan of `request`, on exactly as many devices as it needs; fails the test if it is refused.
Setting tiny_setting(const Transformer& model, const PlanRequest& request);
Setting tiny_setting(const Transformer& model, const Training& training,
                     const PlanRequest& request);

}  // namespace trainyard
