// Why a space has no legal plan: the key of it that has no legal value, alone or beside the others;
// where nothing is named, what of the job no plan can have. Found by looking for some legal plan of
// spaces that name less, never by pricing one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/expected.h"
#include "planner/planner.h"

namespace trainyard {

// At "/planner/tensor_parallel", or at a key of the job. Keys of `suspects` are blamed before
// others, the first of them first. Nothing: some plan is legal, or none was found that says why.
std::optional<Error> why_none_is_legal(const PreparedJob& job, const SearchSpace& space,
                                       const PlanRequest& base,
                                       const std::vector<std::string>& suspects = {});

// Of a space without one, for people: "no plan of the space is legal for this job", and the key and
// its refusal where they were found.
std::string none_is_legal(const PreparedJob& job, const SearchSpace& space,
                          const PlanRequest& base);
std::string none_is_legal(const std::optional<Error>& why);

}  // namespace trainyard
