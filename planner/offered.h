// What a plan asks of a stack: the software refuses other ZeRO stages, other numbers of repeated
// layers and what its `limits` name. A search leaves such plans out, unless the `planner` section
// names the values (`may_…`, `known_…`).
#pragma once

#include <string>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/workload/stack.h"
#include "planner/search_space.h"

namespace trainyard {

bool offers_zero_stage(const Stack& stack, int zero_stage, int pipeline_parallel);
// Beside the plan's tensor and context parallelism too, with its experts and its groups.
bool offers_sharding(const Job& job, const Plan& plan);

// Of layers that a stage repeats the step from one number to the next; 0: all layers or none.
int repeated_layers_step(const Stack& stack, int virtual_stages);

// What every stage of the plan repeats.
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

// Whether a search may have it: the space names recomputations, of which it is one, or names none
// and the stack offers it. And each stage its own.
bool may_repeat(const SearchSpace& space, const Stack& stack, const Plan& plan);
bool may_repeat_by_stage(const SearchSpace& space, const Stack& stack);

// Whether the space asks for more than one of something: for no other number, or for some by name.
bool names_several(const Numbers& numbers);

// Whether a search may have these degrees, of which the plan has nothing else.
bool may_spread_experts(const SearchSpace& space, const Job& job, const Plan& degrees);

// Algorithms of context parallelism that a search may have with these degrees.
std::vector<ContextAlgorithm> known_context_algorithms(const SearchSpace& space, const Job& job,
                                                       int context, int tensor);

// What may lie outside the devices, and the ZeRO stages under which (empty: any).
struct SearchedOffload {
  Offload offload;
  std::vector<int> zero_stages;
  bool instead_of_recompute = false;  // without a pipeline, and nothing recomputed beside it
  int most_stage = 3;                 // that can be priced (can_offload)
};
// All on the device first, where that is among them. The choices that the space names, else as in
// `base`, else what the stack can; nothing goes where no link to the hosts is known.
std::vector<SearchedOffload> offloads_of(const Job& job, const SearchSpace& space,
                                         const PlanRequest& base);

}  // namespace trainyard
