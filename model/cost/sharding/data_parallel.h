// Gradient reduction, parameter gathering and the optimizer step of one stage: data parallelism,
// ZeRO and FSDP (handbook §9), over D·c ranks for dense parameters and D_e for experts. What the
// passes beside it hide is taken off, and what they lose to it is added; only the exposed rest
// enters the step.
#pragma once

#include <array>

#include "model/cost/messages/pipeline_sends.h"
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

// Exposed communication of a stage's parameters.
struct DataParallelCost {
  // In the passes of every micro-batch: ZeRO-3's gathers and reductions, ZeRO-2's reductions.
  PassTimes microbatch;
  // In pipelines with several chunks a stage: what the chunk with the embedding, or else the one
  // with the head, has of `microbatch` more than the mean of the stage's chunks, but for what
  // passes lose to it.
  PassTimes more_with_embedding, more_with_head;
  Seconds at_ends;  // the part of it before the first unit of a pass and behind the last one

  // All others once a step.
  Seconds start;     // the first passes wait so long for gathers of updated weights
  Seconds end;       // reductions of gradients that are left when the last pass has ended
  Seconds update;    // gathers right after the update, of weights that then leave the device
  Seconds lost;      // the last micro-batch's passes grow by this for reductions beside them
  Seconds reduced;   // these reductions
  Seconds gathered;  // gathers of updated weights beside the first micro-batch's passes
  double lost_to_gathers = 0;  // seconds by which these passes grow for each second of `gathered`
  // ZeRO-2 in a pipeline: all micro-batches' reductions less what fits beside the passes of a stage
  // that never waits for another one; below zero where there is room for more.
  Seconds queued;
  BesideRamps beside_ramps;  // gathers and reductions beside the passes of the fill and the drain
};

// One micro-batch's passes on a stage, beside which communication of parameters can go on.
struct StageWork {
  PassTimes embedding, layers, head;
  std::array<PassTimes, kLayerKinds> each;  // of one layer of each kind, without copies
  PassTimes copies;  // the part of `layers` that waits for copies to the hosts or from them
  ExchangeTimes forward, backward, weight;  // in the forward and both backward passes
  // As LayerCost has them.
  std::array<Seconds, kLayerKinds> before_experts, before_experts_backward;
  std::array<double, kLayerKinds> repeated{};  // share of the layers of a kind, whole
  Seconds around;  // sends of a micro-batch through all stages, back to the first
  int stage = 0;
  int passes_at_end = 1;  // weight-gradient passes that end the stage's list (Schedule)
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

// Time to gather a stage's parameters and to reduce their gradients once, not overlapped; and the
// part of it that the routed experts of one layer take.
struct ParameterTraffic {
  Seconds gather, reduce;
  Seconds gather_of_experts, reduce_of_experts;
};
ParameterTraffic parameter_traffic(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                                   const StageParameters& stage);

// Matrix products of an optimizer that works on whole matrices (Muon), for one layer: one rank's
// share, where the matrices are shared out among the ranks that hold a part of them (Liu et al.
// 2025, Distributed Muon). The gathering of the matrices is not counted.
struct OrthogonalisationTime {
  Seconds dense, experts;
};
OrthogonalisationTime orthogonalisation_time(const Job& job, const Plan& plan, LayerKind kind);

// What an update that is sharded (ZeRO-1) takes beyond its kernels: the stack's serial time for
// each rank of the sharding group; 0 where the group is one rank.
Seconds serial_update_time(const Stack& stack, const Plan& plan);

// Gradient norm, clipping, and update of this rank's shard with its serial part; on the host where
// the optimizer is offloaded.
Seconds optimizer_time(const PreparedJob& job, const Plan& plan, const StageParameters& stage);

}  // namespace trainyard
