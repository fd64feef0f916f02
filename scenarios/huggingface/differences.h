// What a network has and Transformer has no place for: parameters by the thousand that neither
// time nor memory shows, counted all the same.
#pragma once

#include <string>
#include <vector>

#include "model/workload/transformer.h"
#include "scenarios/huggingface/architectures.h"
#include "scenarios/huggingface/config.h"

namespace trainyard {

// What the config says of a network beside its Transformer.
struct NetworkFacts {
  LinearBiases biases;
  bool head_bias = false;
  int norms = 2;
  bool final_norm = true;
  int embedding_width = 0;  // where it is not hidden_size (OPT-350M)
  HeadNorm qk_norm = HeadNorm::none;
  int index_heads = 0;  // of the indexer of sparse attention (DeepSeek-V3.2); 0: there is none
  int index_head_dim = 0;
};

struct ParameterDifference {
  std::string what;
  double parameters = 0;  // that the network has and its Transformer has not; negative: the reverse
};

// Requires: the model is complete (defaults filled).
std::vector<ParameterDifference> parameter_differences(const Transformer& model,
                                                       const Architecture& architecture,
                                                       const NetworkFacts& facts);

}  // namespace trainyard
