// Sequences of different lengths: which lengths a batch holds (drawn from a distribution, or
// given), and which micro-batch of which replica gets which sequences. There is no padding: a
// micro-batch has the tokens of its sequences, and attention stays inside each sequence
// (variable-length kernels). Three ways of filling micro-batches:
//
// Fixed (neither packed nor dynamic): m micro-batches a replica. In order, each has b sequences;
// balanced, each has about the same work.
//
// Packed: documents are concatenated into rows of the full length and cut where a row ends, as in
// pre-training. Every row has the same tokens; its attention is the sum over its documents.
//
// Dynamic: a micro-batch has whole sequences of at most b·s tokens (of 8192: 5000, and 4000 with
// 3000), and every replica has as many micro-batches as the replica that needs most (verl's
// use_dynamic_bsz; NeMo's packing, which cuts nothing).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace trainyard {

struct Plan;
struct Training;
struct Transformer;

enum class LengthLaw { uniform, lognormal };

// Lengths are clamped to 1 … the training's sequence_length.
struct SequenceMix {
  std::optional<LengthLaw> law;       // none: `lengths` are given
  std::int64_t shortest = 1;          // uniform: from `shortest` to the sequence length
  std::int64_t mean = 0;              // lognormal
  double deviation = 1;               // lognormal: standard deviation / mean
  std::vector<std::int64_t> lengths;  // taken in turn, over and over
  bool packed = false;
  bool balanced = false;  // most work first, to the micro-batch with least; else in order
  bool dynamic = false;
};

// The work of one micro-batch on one replica, over that of b sequences of the full length.
struct SequenceWork {
  double tokens = 0;
  double attention = 0;  // causal FLOP of the attention core
};

struct DealtSequences {
  std::vector<std::vector<SequenceWork>> work;  // [replica][micro-batch]; equally many for all
  double tokens = 1;                            // of the whole batch, over a batch of full lengths
  double flop = 1;                              // likewise its model FLOP, full attention as in MFU
};

// The most tokens that a micro-batch may have: b·s.
std::int64_t most_tokens(const Training& training, const Plan& plan);

// Deals the sequences of one batch to micro-batches. Requires: check() of the conditions.
//
// Fixed, in order: micro-batch j of replica d has the b sequences from number (j·D + d)·b on.
// Dynamic: replica d deals the same sequences evenly over its micro-batches; if balanced, all
// sequences are dealt over the micro-batches of all replicas. The number of micro-batches is the
// least for which dealing by tokens, largest first, keeps all within the limit; if the schedule
// does not accept that number, the next one it accepts. It is at most m, where b sequences always
// fit.
DealtSequences deal(const SequenceMix& mix, const Transformer& model, const Training& training,
                    const Plan& plan, std::uint64_t seed);

}  // namespace trainyard
