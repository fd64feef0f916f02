// Model FLOP of one step of the whole job, and the FLOP of a layer that recomputation repeats, both
// summed operator by operator. Model FLOP are what MFU counts: every multiplication of the
// mathematics once, with attention counted in full (the convention of Megatron and PaLM) or causal.
// Hardware FLOP (HFU) add what is repeated above the kernel's interface (model/cost/estimate.cpp).
// Handbook §3: for a plain GPT the sums reduce to 72·B·s·L·h²·(1 + s/(6h) + V/(12Lh)) and, with
// full recomputation, to 96·B·s·L·h²·(1 + s/(6h) + V/(16Lh)) (Narayanan et al. 2021, eq. 3).
#pragma once

#include "model/units.h"
#include "model/workload/training.h"
#include "model/workload/transformer.h"

namespace trainyard {

enum class AttentionCount { full, causal };

struct SequenceFlop {    // of one sequence, forward
  Flops layers;          // all layers, MTP layers included
  Flops attention_core;  // the part of `layers` that is the attention core
  Flops head;            // the output head, once more for each MTP layer
};
SequenceFlop sequence_forward_flop(const Transformer& model, const Training& training,
                                   AttentionCount count = AttentionCount::full);

// Forward FLOP of one layer and sequence that backward repeats: under full recomputation of the
// layer and under what the stack means by selective. Attention counted in full.
struct RepeatedFlop {
  Flops full, selective;
};
RepeatedFlop repeated_flop(const Transformer& model, const Training& training, LayerKind kind);

// FLOP = 3 · forward FLOP of a sequence · B.
Flops model_flop(const Transformer& model, const Training& training,
                 AttentionCount count = AttentionCount::full);

}  // namespace trainyard
