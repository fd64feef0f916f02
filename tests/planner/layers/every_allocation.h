// Tries every allocation of layers to stages with every recomputation: a second computation of what
// the dynamic programme of planner/layers/allocation.h finds.
#pragma once

#include <limits>
#include <vector>

#include "planner/layers/allocation.h"

namespace trainyard {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Seconds that stage `j` takes for one micro-batch with layers first … end − 1 under one
// recomputation policy; infinite if the stage does not fit in memory. `again` is how many of its
// layers are recomputed in full, 0 … all.
double stage_time(const AllocationProblem& problem, int j, int first, int end, RecomputeMode mode,
                  int again);

// The stage's times under all policies that the problem allows.
std::vector<double> all_times(const AllocationProblem& problem, int j, int first, int end);

// The shortest step in seconds; infinite if no allocation fits.
double brute_force(const AllocationProblem& problem);

}  // namespace trainyard
