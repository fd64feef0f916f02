// Kernel times of one layer (or the embedding, or the output head) on one rank for one micro-batch,
// without communication: sums over its operators (model/workload/operators.h). They depend only on
// the job and on how the layer is cut (LayerShard), so plans that cut it alike share them.
#pragma once

#include <cstdint>

#include "model/cost/compute.h"
#include "model/cost/kernels/gemm.h"
#include "model/cost/memo.h"
#include "model/job.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// Kernels that hide the second gather (the all-gather of a column-parallel projection's saved input
// for its weight gradient): those of the projection's input gradient in a whole backward pass; the
// weight gradient before it in a weight-gradient pass of its own.
struct GatherCover {
  Seconds whole, split;
};

// Times of one micro-batch's passes, and the bytes that it keeps for backward.
struct KernelTimes {
  OperatorTime all;
  // Fused attention and the merge of ring attention: ring messages hide behind these.
  Seconds attention_core_forward, attention_core_backward;
  // Forward time that selective recomputation repeats: the attention core; every second GEMM and
  // the memory-bound operators (SelectiveRecompute).
  Seconds recomputed_core;
  Seconds every_second_matmul;
  Seconds before_experts;                  // forward of all operators before the routed experts
  Seconds shared_experts_backward;         // runs before the routed experts' backward
  GatherCover attention_cover, mlp_cover;  // the head's is mlp_cover
  GatherCover mtp_cover;
  Seconds after_last_saved;         // forward that an early stop of recomputation leaves out
  Bytes saved, saved_outside_core;  // without recomputation; of it, outside the attention core
  Bytes saved_by_every_second;      // outputs of attention and of the GEMMs that are not repeated
  // The most bytes of gradients alive at once in the backward pass of one operator, with the copy
  // of a sequence that its collective needs.
  Bytes gradients;
  // What the weight gradients read, where they are a pass of their own.
  Bytes between_halves;
};

// What is timed: an end of the network, or (End::none) a layer by the index of its kind.
struct TimedUnit {
  enum class End : std::uint8_t { none, embedding, head };
  End end = End::none;
  int kind = 0;
  friend bool operator==(TimedUnit, TimedUnit) = default;
};

KernelTimes kernel_times(const PreparedJob& job, const LayerShard& shard, TimedUnit unit);

// Kernel times of one job, each computed once. Safe from several threads.
class KernelTimeTable {
 public:
  // `job` outlives the table.
  explicit KernelTimeTable(const PreparedJob& job);
  KernelTimes times(const LayerShard& shard, TimedUnit unit) const;

 private:
  struct Key {
    LayerShard shard;
    TimedUnit unit;
    friend bool operator==(const Key&, const Key&) = default;
  };
  const PreparedJob& job_;
  GemmTimeTable gemms_;
  Memo<Key, KernelTimes> units_{8192};
};

}  // namespace trainyard
