// One layer (or the embedding, or the output head) on one rank for one micro-batch: the time of its
// passes, split into the parts of the breakdown, and the bytes it keeps for backward. Everything a
// stage costs is a sum of these. Communication is exposed communication: what overlaps with the
// layer's own kernels is taken off. Sends and parameters' traffic are the stage's, not in here.
#pragma once

#include <array>

#include "model/cost/kernel_times.h"
#include "model/cost/messages/traffic.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

struct PassCost {
  Seconds compute;          // kernels
  Seconds recompute;        // forward work repeated in backward, its communication included
  Seconds tensor_parallel;  // exposed communication
  Seconds context_parallel;
  Seconds expert_parallel;
  Seconds launch;  // what the host needs beyond all of the above
  // Not in the total: messages of ring attention that its blocks hide, and how much longer than
  // these messages the blocks are.
  Seconds ring_hidden, ring_spare;

  Seconds total() const {
    return compute + recompute + tensor_parallel + context_parallel + expert_parallel + launch;
  }
  PassCost& add(const PassCost& other, double times);
};

// Bytes one micro-batch keeps for backward under each recomputation.
struct SavedBytes {
  Bytes everything;  // none
  Bytes selective;
  Bytes input_only;  // full
  // From the input-gradient pass to the weight-gradient pass of a split backward: the GEMMs' saved
  // inputs, and the gradients of their outputs. Can be more than `everything`.
  Bytes between_halves;
};

// Exposed part of the second gather (sequence parallelism all-gathers the saved inputs once more
// for the weight gradients), beyond the kernels beside it: in a whole backward pass, and in a
// weight-gradient pass of its own.
struct SecondGather {
  Seconds whole, split;
};

struct LayerCost {
  PassCost forward;
  PassCost input_gradient;  // with all communication and launch of a whole backward pass
  PassCost weight_gradient;
  // Added to input_gradient when the layer is recomputed.
  PassCost selective_recompute;
  PassCost full_recompute;
  // MoE layer: from the beginning of its forward pass to its routed experts, and the same of its
  // backward pass without recomputation. Weights of experts are not needed before.
  Seconds before_experts, before_experts_backward;
  SecondGather second_gather;  // not in the passes yet: add_second_gather()
  SavedBytes saved;
  // Most bytes of activation gradients that are alive at once in the layer's backward pass.
  Bytes gradients;

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
// `table`: kernel times of the same job; null: kernels are timed anew.
StageCosts stage_costs(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                       const TensorTraffic& tensor, const KernelTimeTable* table);

// Adds the second gather to the pass that waits for it under the plan's schedule: the weight
// gradient where backward is split, else the input gradient. Without it the passes are a lower
// bound for all schedules.
void add_second_gather(const Plan& plan, const SecondGather& gather, PassCost& input_gradient,
                       PassCost& weight_gradient);
void add_second_gather(const Plan& plan, LayerCost& cost);
void add_second_gathers(const Plan& plan, StageCosts& costs);

}  // namespace trainyard
