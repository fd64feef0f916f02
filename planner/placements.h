// Placements of the ranks of some degrees: which of them put process groups on other links, and so
// differ in cost.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// An order of the ranks, and the algorithm of their collectives.
struct Placement {
  std::string rank_order;
  std::string collective;
};

// Sorts placements into classes: those of a class have the same collective and put the groups of
// every layer in the same place, so that all their passes are the same. Of placements whose groups
// all have the same links only the first appears. `parts`: numbers of ranks over which states may
// be sharded instead of all. Requires: `indices` are of `all`, one at least; `plan` has the
// degrees.
using PlacementClass = std::vector<std::size_t>;
std::vector<PlacementClass> placement_classes(const PreparedJob& job,
                                              const std::vector<Placement>& all,
                                              const std::vector<std::size_t>& indices, Plan plan,
                                              const std::vector<int>& parts);

}  // namespace trainyard
