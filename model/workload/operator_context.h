// What the files that list operators share: the sizes that a shard gives every operator, and the
// two shapes that most operators have. Internal to model/workload.
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
  double input_tokens = 0;  // of inputs that column-parallel GEMMs keep: the same, or n
  double activation = 2;    // bytes of an element between operators
  double gemm_input = 2;    // bytes that a layer GEMM keeps of an input element
};
OperatorContext operator_context(const Transformer& model, const Training& training,
                                 const LayerShard& shard);

Operator memory_bound(OperatorKind kind, double forward_bytes, double backward_bytes,
                      double saved_bytes);
// Forward FLOP and weights by the shape.
Operator gemm(OperatorKind kind, const GemmShape& shape, double saved_bytes);
// With the casts of the recipe.
Operator layer_gemm(const OperatorContext& context, OperatorKind kind, const GemmShape& shape,
                    double saved_bytes);

// Reads and writes `elements`; backward reads the input and a gradient and writes one.
Operator norm(const OperatorContext& context, OperatorKind kind, double elements, double weights);
Operator hidden_norm(const OperatorContext& context, OperatorKind kind);

// Beside the collectives of a block or an end, where the stack and the shard have such copies: each
// reads and writes n·h elements. Gathers are of what the GEMM reads, cast or not; sums of
// activations.
void append_sequence_copy(const OperatorContext& context, OperatorKind kind, OperatorList& list);

void append_attention(const OperatorContext& context, bool sliding, OperatorList& list);
void append_dense_mlp(const OperatorContext& context, OperatorList& list);
void append_experts(const OperatorContext& context, OperatorList& list);

}  // namespace trainyard
