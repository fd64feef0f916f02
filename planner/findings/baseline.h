// The rule of thumb that people use without a planner, as a yardstick beside what the search found:
// tensor parallelism inside the node (Megatron-LM; Narayanan et al. 2021, takeaway 1), experts
// inside the node, then pipeline stages until the model fits (with recomputation only if no number
// of stages is enough), data parallelism with the rest, micro-batch 1, everything else as the stack
// has it.
#pragma once

#include <string_view>

#include "model/expected.h"
#include "planner/planner.h"

namespace trainyard {

inline constexpr std::string_view kRuleOfThumb = "rule of thumb";
inline constexpr std::string_view kPlainDdp = "plain DDP";
inline constexpr std::string_view kPlainFsdp = "plain FSDP";

// The first of those plans that fits; the last one tried when none does; where none is legal, what
// is refused of the first. `base` gives the keys that the rule does not touch.
Expected<Candidate> rule_of_thumb(const PreparedJob& job, const PlanRequest& base,
                                  const Evaluator& evaluate);

// Every device a replica with micro-batches of one sequence: DDP (ZeRO stage 0) or FSDP (3), with
// the least recomputation that fits, without any where none does.
// An error where that is not legal (a batch smaller than the cluster).
Expected<Candidate> data_parallel_only(const PreparedJob& job, int zero_stage,
                                       const PlanRequest& base, const Evaluator& evaluate);

}  // namespace trainyard
