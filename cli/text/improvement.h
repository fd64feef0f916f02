// What was gained by improving a plan that a search found, in words.
#pragma once

#include <string>

#include "planner/improvement.h"

namespace trainyard {

// The gain over the first plan of the list: "1.2 % faster than plan 1".
std::string improvement_gain(const Estimate& improved, const Estimate& first);

// "plan 1 with layers 9, 10 × 6, 7: 4.71 s (2.1 % less than plan 1), memory 70 GiB. …", the bound
// included. `plans` are those listed, the best first. `valued` describes the improved plan's value
// where plans are ordered by neither step time nor memory.
std::string improvement_words(const Improvement& improvement, const std::vector<Candidate>& plans,
                              const std::string& valued = "");

}  // namespace trainyard
