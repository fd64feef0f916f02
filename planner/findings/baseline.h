// Baselines: plans that people make without a planner, to compare the search's plans with. The rule
// of thumb is tensor parallelism inside the node (Megatron-LM; Narayanan et al. 2021, takeaway 1),
// experts inside the node, then pipeline stages until the network fits (with recomputation only if
// no number of stages is enough), data parallelism with the rest, micro-batch 1, everything else as
// the stack has it.
#pragma once

#include <string_view>

#include "model/expected.h"
#include "planner/planner.h"

namespace trainyard {

inline constexpr std::string_view kRuleOfThumb = "rule of thumb";
inline constexpr std::string_view kPlainDdp = "plain DDP";
inline constexpr std::string_view kPlainFsdp = "plain FSDP";

// The first of the rule's plans that fits; if none does, the last legal one; if none is legal, the
// refusal of the first. `base` gives the keys that the rule does not touch.
Expected<Candidate> rule_of_thumb(const PreparedJob& job, const PlanRequest& base,
                                  const Evaluator& evaluate);

// DDP (`zero_stage` 0) or FSDP (3): every device is a replica with micro-batches of one sequence,
// and the least recomputation that fits, or none where no recomputation does. An error where that
// is not legal (a batch smaller than the cluster).
Expected<Candidate> data_parallel_only(const PreparedJob& job, int zero_stage,
                                       const PlanRequest& base, const Evaluator& evaluate);

}  // namespace trainyard
