// What recipes of 8 and 4 bits put around a layer's GEMMs (Micikevicius et al. 2022, FP8 Formats
// for Deep Learning; Transformer Engine): the input and the gradient of the output are cast before
// them, the cast input is what is saved, and gathers of sequence parallelism may carry casts.
// Weights stay in 16 bits; a GEMM casts them as it reads them. In wider recipes every function here
// leaves its operand as it is. Internal to model/program.
#pragma once

#include <string_view>
#include <vector>

#include "model/program/parts/unit.h"

namespace trainyard {

// Of the weights of a GEMM in this dtype.
CastFormat weight_cast(const NetworkUnit& unit, Dtype gemm);

// What a GEMM of `part` reads, and keeps, of an input.
int cast_input(NetworkUnit& unit, OperatorKind part, int input);
// What its backward GEMMs read of the gradients of its outputs.
std::vector<Operand> cast_gradients(NetworkUnit& unit, OperatorKind part,
                                    const std::vector<Operand>& gradients);

// Before a column-parallel GEMM: this rank's tokens cast and gathered, or gathered and cast.
struct GemmInput {
  Operand read;    // by the GEMM
  int saved = -1;  // for its weight gradient: this rank's tokens
};
GemmInput gathered_input(NetworkUnit& unit, OperatorKind part, int local, std::string_view name);
// The same of the gradient of a row-parallel GEMM's output.
Operand gathered_gradient(NetworkUnit& unit, OperatorKind part, Operand local,
                          std::string_view name);

}  // namespace trainyard
