// Model and hardware FLOP of one step of the whole job, summed operator by operator. Model FLOP are
// what MFU counts: every multiplication of the mathematics once, attention in full (the convention
// of Megatron and PaLM) or causal; hardware FLOP add what recomputation repeats. Handbook §3: for a
// plain GPT the sums reduce to 72·B·s·L·h²·(1 + s/(6h) + V/(12Lh)) and, with full recomputation,
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

// 3 × forward × global batch.
Flops model_flop(const Transformer& model, const Training& training,
                 AttentionCount count = AttentionCount::full);

}  // namespace trainyard
