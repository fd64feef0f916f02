// Every allocation of layers to stages with every recomputation: the other road to what the dynamic
// programme finds.
#pragma once

#include <limits>
#include <vector>

#include "planner/layers/allocation.h"

namespace trainyard {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Time of stage `j` with layers first … end − 1 under one policy; infinite where it does not fit.
// `again`: layers that are recomputed in full, 0 … all.
double stage_time(const AllocationProblem& problem, int j, int first, int end, RecomputeMode mode,
                  int again);

// Under every policy that the problem has.
std::vector<double> all_times(const AllocationProblem& problem, int j, int first, int end);

// The least step; infinite where no allocation fits.
double brute_force(const AllocationProblem& problem);

}  // namespace trainyard
