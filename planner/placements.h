// Where the ranks of some degrees may lie: the orders of them that differ, and the sharding groups
// that stay inside an NVLink domain or below a leaf switch.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// In which order ranks lie, and which algorithm their collectives take.
struct Placement {
  std::string rank_order;
  std::string collective;
};

// Those of `all` that put the groups of every layer in the same place stand together, in the order
// of `all`: no pass of theirs differs. One of those whose links are all the same appears, the
// first; `parts`: numbers of ranks over which states may be sharded instead of all. Requires:
// indices into `all`, one at least; `plan` has the degrees.
using PlacementClass = std::vector<std::size_t>;
std::vector<PlacementClass> placement_classes(const PreparedJob& job,
                                              const std::vector<Placement>& all,
                                              const std::vector<std::size_t>& indices, Plan plan,
                                              const std::vector<int>& parts);

}  // namespace trainyard
