// Finds why a space has no legal plan: the key of the space that has no legal value, alone or
// beside the other keys; where the space names nothing, the property of the job that no plan can
// have. It looks for a legal plan in spaces that name fewer keys, and never prices one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/expected.h"
#include "planner/planner.h"

namespace trainyard {

// The refusal, at a pointer such as "/planner/tensor_parallel" or at a key of the job. Keys of
// `suspects` are blamed before others, in their order. Nothing: some plan is legal, or no reason
// was found.
std::optional<Error> why_none_is_legal(const PreparedJob& job, const SearchSpace& space,
                                       const PlanRequest& base,
                                       const std::vector<std::string>& suspects = {});

// A message for a space without a legal plan: "no plan of the space is legal for this job", with
// the key and its refusal where they were found.
std::string none_is_legal(const PreparedJob& job, const SearchSpace& space,
                          const PlanRequest& base);
std::string none_is_legal(const std::optional<Error>& why);

}  // namespace trainyard
