// What the files that list operators share: the sizes that follow from a shard, and constructors
// for common kinds of operators. Internal to model/workload.
#pragma once

#include "model/workload/operators.h"

namespace trainyard {

struct OperatorContext {
  const Transformer& model;
  const Training& training;
  const LayerShard& shard;
  double hidden = 0;
  double tensor = 1;        // t
  double tokens = 0;        // n = b·s/c
  double local_tokens = 0;  // n/t under sequence parallelism: norms, residuals
  double input_tokens = 0;  // kept of a column-parallel GEMM's input: local_tokens, or n
  double activation = 2;    // bytes of an element between operators
  double gemm_input = 2;    // bytes that a layer GEMM keeps for an element of its input
};
OperatorContext operator_context(const Transformer& model, const Training& training,
                                 const LayerShard& shard);

Operator memory_bound(OperatorKind kind, double forward_bytes, double backward_bytes,
                      double saved_bytes);
// A GEMM whose forward FLOP and weights follow from its shape.
Operator gemm(OperatorKind kind, const GemmShape& shape, double saved_bytes);
// The same with what recipe and stack add: casts, bias gradients, cast weights that are saved.
Operator layer_gemm(const OperatorContext& context, OperatorKind kind, const GemmShape& shape,
                    double saved_bytes);

// Forward reads and writes `elements`; backward reads input and gradient and writes a gradient.
Operator norm(const OperatorContext& context, OperatorKind kind, double elements, double weights);
Operator hidden_norm(const OperatorContext& context, OperatorKind kind);

// Appends the copy beside a collective of sequence parallelism, if the stack makes such copies and
// the shard has such a collective (Stack::copies_sharded_sequences). It reads and writes n·h
// elements: for a gather of what the GEMM reads, cast or not; for a reduce-scatter of activations.
void append_sequence_copy(const OperatorContext& context, OperatorKind kind, OperatorList& list);

void append_attention(const OperatorContext& context, bool sliding, OperatorList& list);
void append_dense_mlp(const OperatorContext& context, OperatorList& list);
void append_experts(const OperatorContext& context, OperatorList& list);

}  // namespace trainyard
