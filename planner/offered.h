// Whether the software of a stack runs a plan (`offers_…`): it refuses ZeRO stages and numbers of
// recomputed layers that the stack does not list, and what its `limits` exclude. A search leaves
// such plans out, unless the `planner` section names the values (`may_…`, `known_…`).
#pragma once

#include <string>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/workload/stack.h"
#include "planner/search_space.h"

namespace trainyard {

bool offers_zero_stage(const Stack& stack, int zero_stage, int pipeline_parallel);
// The plan's ZeRO stage, with its degrees, its experts and its sharding group.
bool offers_sharding(const Job& job, const Plan& plan);

// A stage can recompute some of its layers in multiples of this; 0: only all layers or none.
int repeated_layers_step(const Stack& stack, int virtual_stages);

// What every stage of the plan recomputes.
bool offers_recompute(const Stack& stack, const Plan& plan);

bool offers_pipeline(const Stack& stack, const Plan& plan);
bool offers_sequence_parallel(const Stack& stack, const Plan& plan);
bool offers_context(const Job& job, const Plan& plan);
bool offers_experts(const Job& job, const Plan& plan);
bool offers_chunks(const Job& job, const Plan& plan);
// Whether a group of so many ranks may share the states.
bool offers_group(const Stack& stack, int group, int context_parallel);

// All of these.
bool offers(const Job& job, const Plan& plan);

// Whether a search may use the plan's recomputation: the space names it, or it names none and the
// stack offers it.
bool may_repeat(const SearchSpace& space, const Stack& stack, const Plan& plan);
// Whether a search may choose recomputation for each stage on its own.
bool may_repeat_by_stage(const SearchSpace& space, const Stack& stack);

// Whether the space names a number above 1: in a list, or by a range that begins above 1.
bool names_several(const Numbers& numbers);

// Whether a search may use these degrees of expert parallelism. `degrees`: a plan with degrees
// only.
bool may_spread_experts(const SearchSpace& space, const Job& job, const Plan& degrees);

// Algorithms of context parallelism that a search may have with these degrees.
std::vector<ContextAlgorithm> known_context_algorithms(const SearchSpace& space, const Job& job,
                                                       int context, int tensor);

// What may lie outside the devices, and the ZeRO stages under which (empty: any).
struct SearchedOffload {
  Offload offload;
  std::vector<int> zero_stages;
  bool instead_of_recompute = false;  // without a pipeline, and nothing recomputed beside it
  int most_stage = 3;                 // highest ZeRO stage that can be priced (can_offload)
};
// The choices of offload to search: those that the space names, else that of `base`, else all on
// the device and what the stack can. Without a known link to the hosts only all on the device is
// left. All on the device comes first, where it is among them.
std::vector<SearchedOffload> offloads_of(const Job& job, const SearchSpace& space,
                                         const PlanRequest& base);

}  // namespace trainyard
