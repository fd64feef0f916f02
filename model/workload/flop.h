// Model FLOP of one step of the whole job and what recomputation repeats of a layer, summed
// operator by operator. Model FLOP are what MFU counts: every multiplication of the mathematics
// once, attention in full (the convention of Megatron and PaLM) or causal; hardware FLOP (HFU) add
// what is repeated above the kernel's interface (model/cost/estimate.cpp). Handbook §3: for a plain
// GPT the sums reduce to 72·B·s·L·h²·(1 + s/(6h) + V/(12Lh)) and, with full recomputation,
// 96·B·s·L·h²·(1 + s/(6h) + V/(16Lh)) (Narayanan et al. 2021, eq. 3).
#pragma once

#include "model/units.h"
#include "model/workload/training.h"
#include "model/workload/transformer.h"

namespace trainyard {

enum class AttentionCount { full, causal };

struct SequenceFlop {    // of one sequence, forward
  Flops layers;          // all layers, those of multi-token prediction among them
  Flops attention_core;  // the part of `layers` that is the attention core
  Flops head;            // of every token that is predicted
};
SequenceFlop sequence_forward_flop(const Transformer& model, const Training& training,
                                   AttentionCount count = AttentionCount::full);

// Of one layer and sequence, forward: what its backward pass repeats where the whole layer is
// recomputed and where the stack's selective recomputation is. Attention counted in full.
struct RepeatedFlop {
  Flops full, selective;
};
RepeatedFlop repeated_flop(const Transformer& model, const Training& training, LayerKind kind);

// 3 × forward × global batch.
Flops model_flop(const Transformer& model, const Training& training,
                 AttentionCount count = AttentionCount::full);

}  // namespace trainyard
