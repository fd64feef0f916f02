// What recomputation repeats of a layer's operators beside the flags that an operator has
// (`after_last_saved`, `in_attention_core`): every second GEMM, as torchtitan's selective
// activation checkpointing counts them in the order of a layer's modules.
#pragma once

#include "model/workload/operators.h"
#include "model/workload/stack.h"
#include "model/workload/transformer.h"

namespace trainyard {

// Share of the operator's forward pass that is repeated where every second GEMM is: key, output and
// second MLP input projection of a gated layer, and what is bound by memory. Of attention nothing.
double every_second_share(const Transformer& model, const Operator& op);

// Nothing behind it is needed again where every second GEMM is repeated.
bool ends_every_second(const Stack& stack, OperatorKind kind);

}  // namespace trainyard
