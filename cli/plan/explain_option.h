// Parses `plan --explain tp=8,pp=16`, which fixes ("pins") some keys of a plan and leaves the rest
// free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "planner/findings/findings.h"
#include "scenarios/scenario.h"

namespace trainyard {

// "tp=8,zero_stage=1": keys of a `planner` section that plans have too, or the short names tp cp pp
// vp dp ep etp mb zero. Values are written as in a document, texts without quotes.
Expected<std::vector<PinnedKey>> parse_pinned_keys(std::string_view text);

// `keys` with each pinned key allowed only its values. Requires: `pinned` comes from
// parse_pinned_keys().
PlannerKeys pinned_keys(const PlannerKeys& keys, const std::vector<PinnedKey>& pinned);

// "tensor_parallel 8, pipeline_parallel 16".
std::string pinned_words(const std::vector<PinnedKey>& pinned);

}  // namespace trainyard
