// What was gained by improving a plan that a search found, in words.
#pragma once

#include <string>

#include "planner/improvement.h"

namespace trainyard {

// The gain over the first plan of the list: "1.2 % faster than plan 1".
std::string improvement_gain(const Estimate& improved, const Estimate& first);

// "plan 1 with other layers (9 · 6 × 10 · 7) takes 4.71 s (2.1 % less) …, bound included.
// `plans`: those that are listed, the best first. `valued`: what it has of what is minimised, where
// that is neither step time nor memory.
std::string improvement_words(const Improvement& improvement, const std::vector<Candidate>& plans,
                              const std::string& valued = "");

}  // namespace trainyard
