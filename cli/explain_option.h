// The question behind `plan --explain tp=8,pp=16`: keys of a plan held fast, the rest free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "model/plan/plan.h"
#include "planner/findings.h"
#include "planner/search_space.h"

namespace trainyard {

// "tp=8,zero_stage=1": long names, or tp cp pp vp dp ep etp mb zero.
Expected<std::vector<PinnedKey>> parse_pinned_keys(std::string_view text);

// The space with the pinned keys allowed these values only. Requires: parsed by the above.
SearchSpace pinned_space(SearchSpace space, const std::vector<PinnedKey>& pinned);
// The request with the pinned keys replaced; data parallelism fills the cluster unless pinned.
PlanRequest pinned_request(PlanRequest request, const std::vector<PinnedKey>& pinned);

// "tensor_parallel 8, pipeline_parallel 16".
std::string pinned_words(const std::vector<PinnedKey>& pinned);

}  // namespace trainyard
