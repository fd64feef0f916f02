// The casts that recipes of 8 and 4 bits put around a layer's GEMMs (Micikevicius et al. 2022, FP8
// Formats for Deep Learning; Transformer Engine). The input of a GEMM and the gradient of its
// output are cast before it, the cast input is what is saved, and gathers of sequence parallelism
// may carry casts. Weights stay in 16 bits; a GEMM casts them as it reads them. In wider recipes
// every function here returns its operand unchanged. Internal to model/program.
#pragma once

#include <string_view>
#include <vector>

#include "model/program/parts/unit.h"

namespace trainyard {

// The format to which a GEMM of this dtype casts its weights; none if it is not a layer GEMM.
CastFormat weight_cast(const NetworkUnit& unit, Dtype gemm);

// The buffer that a GEMM of `part` reads and keeps: `input`, or its cast.
int cast_input(NetworkUnit& unit, OperatorKind part, int input);
// What its backward GEMMs read: the gradients of its outputs, or one cast of all of them.
std::vector<Operand> cast_gradients(NetworkUnit& unit, OperatorKind part,
                                    const std::vector<Operand>& gradients);

// The input of a column-parallel GEMM: this rank's tokens, cast and gathered in either order.
struct GemmInput {
  Operand read;    // what the GEMM reads: all tokens
  int saved = -1;  // what is kept for its weight gradient: this rank's tokens
};
GemmInput gathered_input(NetworkUnit& unit, OperatorKind part, int local, std::string_view name);
// The same for the gradient of a row-parallel GEMM's output.
Operand gathered_gradient(NetworkUnit& unit, OperatorKind part, Operand local,
                          std::string_view name);

}  // namespace trainyard
