// The parameters of a network that a Transformer does not represent. They are too few to matter for
// time or memory, but they are counted and reported.
#pragma once

#include <string>
#include <vector>

#include "model/workload/transformer.h"
#include "scenarios/huggingface/architectures.h"
#include "scenarios/huggingface/config.h"

namespace trainyard {

// What a config says about a network beyond its Transformer.
struct NetworkFacts {
  LinearBiases biases;
  bool head_bias = false;
  int norms = 2;
  bool final_norm = true;
  int embedding_width = 0;  // if it is not hidden_size (OPT-350M); 0: it is
  HeadNorm qk_norm = HeadNorm::none;
  int index_heads = 0;  // of the indexer of sparse attention (DeepSeek-V3.2); 0: none
  int index_head_dim = 0;
};

struct ParameterDifference {
  std::string what;
  double parameters = 0;  // of the network beyond its Transformer's; negative: fewer
};

// Requires: the model is complete (defaults filled).
std::vector<ParameterDifference> parameter_differences(const Transformer& model,
                                                       const Architecture& architecture,
                                                       const NetworkFacts& facts);

}  // namespace trainyard
