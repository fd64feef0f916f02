// Gradient reduction, parameter gathering and the optimizer step of one stage: data parallelism,
// ZeRO and FSDP (handbook §9), over D·c ranks for dense parameters and D_e for experts.
#pragma once

#include <array>

#include "model/cost/messages/priced_messages.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/sharding/overlap.h"
#include "model/cost/sharding/shard_divisors.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

// Exposed communication.
struct DataParallelCost {
  PassTimes microbatch;  // in every pass: ZeRO-3's gathers, reductions of every micro-batch
  Seconds at_ends;       // of that, before the first and behind the last unit of its pass
  // The others once a step.
  Seconds start;     // that the first passes wait for gathers of updated weights
  Seconds end;       // reductions of gradients that are left when the last pass has ended
  Seconds update;    // gathers behind the update, of weights that then leave the device
  Seconds lost;      // that the last micro-batch's passes grow by for reductions beside them
  Seconds reduced;   // those reductions
  Seconds gathered;  // gathers of updated weights beside the first micro-batch's passes
  double lost_to_gathers = 0;  // seconds that those passes grow by for each second of `gathered`
  // ZeRO-2 in a pipeline: what of all micro-batches' reductions would be left behind the last pass
  // of a stage that never waits for another; below zero where there was room for more.
  Seconds queued;
  BesideRamps beside_ramps;  // of gathers and reductions that go on beside passes
};

// What one micro-batch's passes of a stage offer to hide behind.
struct StageWork {
  PassTimes embedding, layers, head;
  std::array<PassTimes, kLayerKinds> each;  // of one layer of each kind, without copies
  PassTimes copies;  // of `layers`, where they wait for copies to the hosts or from them
  ExchangeTimes forward, backward, weight;  // in the forward and both backward passes
  // As LayerCost has them.
  std::array<Seconds, kLayerKinds> before_experts, before_experts_backward;
  Seconds around;  // sends of a micro-batch through all stages, back to the first
  int stage = 0;
  int passes_at_end = 1;  // weight gradients that end the stage's list, micro-batches
  ExchangeUse use;
};
// `prices`: of the same plan.
DataParallelCost data_parallel_cost(const PreparedJob& job, const Plan& plan,
                                    const PlanLinks& links, const StageParameters& stage,
                                    const StageWork& work, PricedMessages& prices);
inline DataParallelCost data_parallel_cost(const PreparedJob& job, const Plan& plan,
                                           const PlanLinks& links, const StageParameters& stage,
                                           const StageWork& work) {
  PricedMessages prices(links);
  return data_parallel_cost(job, plan, links, stage, work, prices);
}

// A stage's parameters gathered and their gradients reduced once, not overlapped; and of that the
// experts of one layer.
struct ParameterTraffic {
  Seconds gather, reduce;
  Seconds gather_of_experts, reduce_of_experts;
};
ParameterTraffic parameter_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                                   const StageParameters& stage);

// Of an optimizer that works on whole matrices (Muon), the products of one layer's: what a rank
// does of its dense matrices and of its routed experts, shared out among the ranks that hold a part
// of them (Liu et al. 2025, Distributed Muon). The gathering of the matrices is not counted.
struct OrthogonalisationTime {
  Seconds dense, experts;
};
OrthogonalisationTime orthogonalisation_time(const Job& job, const Plan& plan, LayerKind kind);

// What an update that is sharded (ZeRO-1) takes beyond its kernels; nothing where its group is one
// rank.
Seconds serial_update_time(const Stack& stack, const Plan& plan);

// Gradient norm, clipping, update of this rank's shard with its serial part; where the optimizer is
// offloaded, the host's.
Seconds optimizer_time(const PreparedJob& job, const Plan& plan, const StageParameters& stage);

}  // namespace trainyard
