// The question behind `plan --explain tp=8,pp=16`: keys of a plan held fast, the rest free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "planner/findings/findings.h"
#include "scenarios/scenario.h"

namespace trainyard {

// "tp=8,zero_stage=1": the keys of a `planner` section that a plan has too, or tp cp pp vp dp ep
// etp mb zero; values as there, texts without quotes.
Expected<std::vector<PinnedKey>> parse_pinned_keys(std::string_view text);

// What the planner may choose with the pinned keys allowed these values only. Requires: parsed by
// the above.
PlannerKeys pinned_keys(const PlannerKeys& keys, const std::vector<PinnedKey>& pinned);

// "tensor_parallel 8, pipeline_parallel 16".
std::string pinned_words(const std::vector<PinnedKey>& pinned);

}  // namespace trainyard
