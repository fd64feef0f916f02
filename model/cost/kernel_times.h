// Kernel times of one layer (or the embedding, or the output head) on one rank for one micro-batch,
// before any communication: the sum over its operators (model/workload/operators.h). They depend on
// the job and on how the layer is cut, so that the many plans that cut it alike share them.
#pragma once

#include <cstdint>

#include "model/cost/compute.h"
#include "model/cost/kernels/gemm.h"
#include "model/cost/memo.h"
#include "model/job.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// What a column-parallel projection's saved input has beside it while it is gathered once more for
// the weight gradient: the input gradient's kernels in a whole backward pass, the kernel before in
// a weight-gradient pass of its own.
struct GatherCover {
  Seconds whole, split;
};

// Of one micro-batch's passes, with what recomputation needs of them.
struct KernelTimes {
  OperatorTime all;
  // The fused kernel and the merge that ring steps hide behind.
  Seconds attention_core_forward, attention_core_backward;
  Seconds recomputed_core;  // forward of what selective recomputation of the core repeats
  Seconds every_second_matmul;
  Seconds before_experts;                  // forward of what needs no routed experts
  Seconds shared_experts_backward;         // comes before that of routed ones
  GatherCover attention_cover, mlp_cover;  // of the head: the latter
  GatherCover mtp_cover;
  Seconds after_last_saved;  // forward of what an early stop of recomputation leaves out
  Bytes saved, saved_outside_core;
  Bytes saved_by_every_second;  // outputs of the GEMMs that are not repeated, and attention's
  // The most that one operator's backward pass has alive at a time, and beside it a sequence that
  // is copied for its collective.
  Bytes gradients;
  // What the weights' gradients read, where these are a half of their own.
  Bytes between_halves;
};

// What is timed: an end of the network, or a layer, by the index of its kind.
struct TimedUnit {
  enum class End : std::uint8_t { none, embedding, head };
  End end = End::none;
  int kind = 0;
  friend bool operator==(TimedUnit, TimedUnit) = default;
};

KernelTimes kernel_times(const PreparedJob& job, const LayerShard& shard, TimedUnit unit);

// Times of one job, each made once. Safe from several threads.
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
