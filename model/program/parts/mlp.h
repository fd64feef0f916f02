// The pieces of an MLP that dense layers, shared experts and routed experts have in common.
// Internal to model/program.
#pragma once

#include "model/program/parts/parts.h"

namespace trainyard {

struct MlpNames {
  OperatorKind up_part{}, activation_part{}, down_part{};
  std::string_view up_weight, up_weight_gradient, up_bias, up_bias_gradient;
  std::string_view down_weight, down_weight_gradient;
  std::string_view up, up_gradient, product, product_gradient;
};

struct MlpShape {
  Segment ffn;
  double rows = 0;  // tokens; of routed experts, the tokens of one
  int experts = 0;  // routed experts on this rank; 0: one MLP for all tokens
};

struct MlpPart {
  MlpNames names;
  LinearPart up, down;
  int up_output = -1, product = -1;
  int saved_up = -1, saved_product = -1;  // the same as they are kept for backward
  int gates = -1;                         // of the rows, if experts weight them; −1: none
};

// Makes the branch of the MLP half with its norm; the GEMMs are the caller's.
Branch mlp_branch(NetworkUnit& unit, const LayerMiddle& middle);
// The bias of the down projection, which is added after its reduction.
Parameter mlp_bias(NetworkUnit& unit);
MlpPart make_mlp(NetworkUnit& unit, const MlpNames& names, const MlpShape& shape);
// Columns of this rank's two intermediate activations.
std::int64_t up_width(const MlpPart& mlp);
std::int64_t product_width(const MlpPart& mlp);
void append_activation(NetworkUnit& unit, MlpPart& mlp);
void append_activation_gradient(NetworkUnit& unit, const MlpPart& mlp, int product_gradient,
                                int up_gradient, int gate_gradient);

struct DenseMlp {
  Branch branch;
  MlpPart mlp;
};
DenseMlp append_mlp(NetworkUnit& unit, const LayerMiddle& middle);
void append_mlp_gradient(NetworkUnit& unit, const DenseMlp& half);

}  // namespace trainyard
