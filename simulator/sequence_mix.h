// Sequences of unlike lengths: what a batch holds, drawn from a distribution or given, and which
// micro-batch of which replica gets which of them. Without padding: a micro-batch has as many
// tokens as its sequences, and attention stays inside each (variable-length kernels).
//
// Packed, documents lie one after the other in rows of the full length, cut where a row ends, as in
// pre-training: every row has the same tokens, and attention is the sum over its documents.
//
// Dynamic, a micro-batch has whole sequences of b·s tokens at most, and a replica as few
// micro-batches as the one that needs most (verl's use_dynamic_bsz; NeMo's packing, which cuts
// nothing).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace trainyard {

struct Plan;
struct Training;
struct Transformer;

enum class LengthLaw { uniform, lognormal };

// Lengths over the training's sequence_length are cut to it.
struct SequenceMix {
  std::optional<LengthLaw> law;       // else `lengths`
  std::int64_t shortest = 1;          // uniform: from here to the sequence length
  std::int64_t mean = 0;              // lognormal
  double deviation = 1;               // lognormal: standard deviation over the mean
  std::vector<std::int64_t> lengths;  // one after the other, and from the first again
  bool packed = false;
  bool balanced = false;  // longest first to the emptiest micro-batch; else in order
  bool dynamic = false;   // as few micro-batches as hold them
};

// Of one micro-batch on one replica, over what sequences of the full length would be.
struct SequenceWork {
  double tokens = 0;
  double attention = 0;  // FLOP of the attention core, causal
};

struct DealtSequences {
  std::vector<std::vector<SequenceWork>> work;  // [replica][micro-batch]; replicas have as many
  double tokens = 1;                            // of the whole batch, likewise
  double flop = 1;                              // model FLOP, attention in full as MFU counts it
};

// Tokens that a micro-batch has at most: b·s.
std::int64_t most_tokens(const Training& training, const Plan& plan);

// Requires: check() of the conditions. In order, micro-batch j of replica d has the sequences from
// (j·D + d)·b on. Dynamic, replica d has the same sequences (or any, where they are balanced) and
// deals them evenly; how many micro-batches is the least with which no such deal by tokens is above
// the limit, or the next one that the schedule takes: m at most, where b sequences fit anyway.
DealtSequences deal(const SequenceMix& mix, const Transformer& model, const Training& training,
                    const Plan& plan, std::uint64_t seed);

}  // namespace trainyard
