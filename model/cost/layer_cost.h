// One layer (or the embedding, or the output head) on one rank for one micro-batch: what its passes
// take, split into the parts of the breakdown, and what it keeps in memory. Everything a stage
// costs is a sum of these.
#pragma once

#include <array>

#include "model/cost/kernel_times.h"
#include "model/cost/messages/traffic.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

struct PassCost {
  Seconds compute;          // kernels
  Seconds recompute;        // forward work repeated in backward, its communication included
  Seconds tensor_parallel;  // exposed communication
  Seconds context_parallel;
  Seconds expert_parallel;
  Seconds launch;  // what the host needs beyond all of the above
  // In none of them: messages of ring attention that the blocks beside them hide, and how much
  // longer those are.
  Seconds ring_hidden, ring_spare;

  Seconds total() const {
    return compute + recompute + tensor_parallel + context_parallel + expert_parallel + launch;
  }
  PassCost& add(const PassCost& other, double times);
};

// Bytes one micro-batch keeps for backward under each recomputation.
struct SavedBytes {
  Bytes everything;
  Bytes selective;
  Bytes input_only;  // full recomputation
  // Between the halves of a split backward pass: what the weights' gradients read of it, and the
  // gradients of the GEMMs' outputs, which the first half has made. Can be more than everything.
  Bytes between_halves;
};

// What shows of the gathers of saved inputs for the weight gradients (sequence parallelism): beyond
// the kernels that they have beside them in a whole backward pass, and in a weight-gradient pass of
// its own.
struct SecondGather {
  Seconds whole, split;
};

struct LayerCost {
  PassCost forward;
  PassCost input_gradient;  // of the whole backward pass when the schedule does not split it
  PassCost weight_gradient;
  // Further parts of input_gradient when the layer is recomputed.
  PassCost selective_recompute;
  PassCost full_recompute;
  // Of a layer of experts: from the beginning of its forward pass to its routed experts, and from
  // that of its backward pass where nothing is repeated.
  Seconds before_experts, before_experts_backward;
  SecondGather second_gather;  // in none of the passes yet: schedules differ
  SavedBytes saved;
  Bytes gradients;  // of activations, alive at once in the backward pass of one of its operators

  PassTimes passes() const {
    return {forward.total(), input_gradient.total(), weight_gradient.total()};
  }
};

LayerCost layer_cost(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                     LayerKind kind);
LayerCost head_cost(const PreparedJob& job, const Plan& plan, const PlanLinks& links);

// The costs that all stages of a plan are made of.
struct StageCosts {
  std::array<LayerCost, kLayerKinds> layers;  // by layer kind (index_of)
  LayerCost embedding, head;
};
StageCosts stage_costs(const PreparedJob& job, const Plan& plan, const PlanLinks& links);
// `table` is of the same job; null: the kernels are timed anew.
StageCosts stage_costs(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                       const TensorTraffic& tensor, const KernelTimeTable* table);

// Puts the second gather into the pass that waits for it under the plan's schedule. Passes without
// it are a lower bound for all schedules.
void add_second_gather(const Plan& plan, const SecondGather& gather, PassCost& input_gradient,
                       PassCost& weight_gradient);
void add_second_gather(const Plan& plan, LayerCost& cost);
void add_second_gathers(const Plan& plan, StageCosts& costs);

}  // namespace trainyard
