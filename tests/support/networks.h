// Published networks that tests and benchmarks share, written out field by field: Llama 3.1 of
// Grattafiori et al. 2024 (arXiv 2407.21783), Table 3.
#pragma once

#include "model/workload/transformer.h"

namespace trainyard {

// What all sizes share: gated MLP, RMSNorm, 8 KV heads of dimension 128, the vocabulary.
inline Transformer llama_3_1(int layers, int heads, int ffn_size) {
  Transformer model;
  model.layers = layers;
  model.hidden_size = 128 * heads;
  model.attention_heads = heads;
  model.kv_heads = 8;
  model.head_dim = 128;
  model.ffn_size = ffn_size;
  model.vocabulary = 128256;
  return model;
}

inline Transformer llama_8b() { return llama_3_1(32, 32, 14336); }
inline Transformer llama_70b() { return llama_3_1(80, 64, 28672); }
inline Transformer llama_405b() { return llama_3_1(126, 128, 53248); }

}  // namespace trainyard
