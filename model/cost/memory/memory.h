// Memory of one rank of each stage, by kind, at its peak: states by the precision recipe, optimizer
// and ZeRO stage; activations by what every operator keeps and how many micro-batches the schedule
// holds in flight; transients, and what the runtime takes. Handbook §7.
#pragma once

#include <array>
#include <string_view>

#include "model/cost/layer_cost.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

struct MemoryByKind {
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // kept for backward by the micro-batches in flight
  // A layer's activations while it is recomputed; a chunk's until both halves of its backward pass
  // have ended.
  Bytes recomputation;
  Bytes logits;
  Bytes buffers;        // gathered parameters, buckets, activations' gradients, GEMM workspace
  Bytes runtime;        // context, communicators
  Bytes fragmentation;  // what the allocator reserves beyond what is allocated

  Bytes allocated() const {
    return parameters + gradients + optimizer + activations + recomputation + logits + buffers;
  }
  Bytes reserved() const { return allocated() + fragmentation; }
  Bytes device() const { return reserved() + runtime; }  // what the device must have
};

// The list of them, by the names of their keys in documents.
struct KindOfMemory {
  std::string_view key;   // "parameters"
  std::string_view head;  // of a column: "param"
  Bytes MemoryByKind::*bytes;
};
inline constexpr std::array kKindsOfMemory = {
    KindOfMemory{"parameters", "param", &MemoryByKind::parameters},
    KindOfMemory{"gradients", "grad", &MemoryByKind::gradients},
    KindOfMemory{"optimizer", "optim", &MemoryByKind::optimizer},
    KindOfMemory{"activations", "activ", &MemoryByKind::activations},
    KindOfMemory{"recomputation", "recomp", &MemoryByKind::recomputation},
    KindOfMemory{"logits", "logits", &MemoryByKind::logits},
    KindOfMemory{"buffers", "buffer", &MemoryByKind::buffers},
    KindOfMemory{"fragmentation", "fragm", &MemoryByKind::fragmentation},
    KindOfMemory{"runtime", "runtime", &MemoryByKind::runtime},
};
static_assert(sizeof(MemoryByKind) == kKindsOfMemory.size() * sizeof(Bytes),
              "every kind is in the list");

// When a stage's memory is fullest, its micro-batches in flight being all there: while the output
// head holds the logits (last stage), or while a layer's backward pass holds its recomputed
// activations.
enum class MemoryMoment { output_head, layer_backward };

struct StageMemory {
  MemoryByKind at_peak;
  MemoryMoment moment = MemoryMoment::layer_backward;
  Bytes on_host;  // of the rank: states and the activations of the micro-batches in flight
};

// Parameters, gradients and optimizer states of a rank that lie there.
MemoryByKind states_at(const Training& training, const Plan& plan, const StageParameters& stage,
                       OffloadTarget where);

// Those on the device: a lower bound of any plan's memory.
MemoryByKind state_memory(const Training& training, const Plan& plan, const StageParameters& stage);

// Memory of a rank of stage `index` at its peak. The optimizer step never is: its states are
// counted throughout, and the activations are gone by then.
StageMemory stage_memory(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                         const StageParameters& stage, int index);

// All that is different on a stage which holds and repeats the same layers as another: the
// micro-batches in flight, on the device and on the host, and what the allocator reserves with
// them.
void fill_activations(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                      const StageParameters& stage, int index, StageMemory& memory);

// Micro-batches at the head beside the one that turns back there: those that wait for it, with
// their logits, and those whose weight gradient is put off, with the gradients of their logits
// (sail-sg/zero-bubble-pipeline-parallelism keeps them for the head's matrix as for any other).
struct BesideTurning {
  int waiting = 0, put_off = 0;
  int all() const { return waiting + put_off; }
};
BesideTurning beside_turning(const Plan& plan);

// Chunks in flight on the stage of the head that are past their input gradient, and no longer have
// what it alone reads: there a micro-batch turns back at once in any order. On other stages all in
// flight count whole (handbook §8): how many are depends on the order, and the published peaks are
// those of orders that fill it (Qi et al. 2023, ZB-1p and ZB-2p).
int past_input_gradient(const Plan& plan, int stage);

// Of logits and their gradients on the stage of the head.
struct LogitsAtHead {
  Bytes turning;  // of the micro-batch that turns back, while its loss is made
  Bytes turned;   // behind that, until the head's weight gradient
  Bytes input;    // beside `turned`: the gradient of the head's input, and that input if gathered
  Bytes beside;   // of those beside it
};
LogitsAtHead logits_at_head(const PreparedJob& job, const Plan& plan);

// Whether weights in the dtype of the passes are kept: FSDP keeps only the sharded master weights
// and casts what it gathers.
bool keeps_weights(const Training& training, const Plan& plan);

// What the layers of a stage keep of one micro-batch for backward.
Bytes saved_by_stage(const StageCosts& costs, const StageParameters& stage, Recompute recompute);

// Of the stage's layers, whose activations leave the device.
double offloaded_share(const Offload& offload, int layers);

// Whether selective recomputation is of every second layer of a stage, whole: of the first, the
// third and so on.
bool repeats_every_second(const Stack& stack, Recompute recompute);

// What a stage of `layers` repeats where the plan says `recompute`: every second layer as full
// recomputation of so many; nothing where selective recomputation is of what flash attention does
// not keep; any other as it is.
Recompute what_is_repeated(const Stack& stack, Recompute recompute, int layers);

// Whether some of a stage's layers are repeated in full and the others not.
bool repeats_some(const Stack& stack, Recompute recompute);

// Share of a stage's layers that full recomputation repeats.
double full_recompute_share(Recompute recompute, int layers);

}  // namespace trainyard
