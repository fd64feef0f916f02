// Finds classes of ranks that behave alike where not all ranks of a stage do, so that one rank is
// played for each class. Classes are the coarsest equitable partition of ranks, groups and links
// together: two ranks of a class are members of groups of the same classes; two groups of a class
// have members of the same classes and put the same traffic on links of each class; two links of a
// class have the same capacity and the same traffic from each class of groups. Found by splitting
// classes until nothing splits (colour refinement; Berkholz, Bonsma & Grohe 2017).
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/graph/task_graph.h"
#include "simulator/network/fabrics.h"

namespace trainyard {

// Splits the ranks and groups of a folded graph by class, and shares out the groups' copies; the
// task lists stay. `rank_of` maps each device to the rank that stands for it, and is updated.
// Returns false and changes nothing if folding would not pay: more classes than a quarter of the
// devices. Requires: a folded graph; no device is in two copies of the same group.
bool part_ranks(Fabrics& fabric, TaskGraph& graph, std::vector<std::int32_t>& rank_of);

}  // namespace trainyard
