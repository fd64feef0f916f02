// Classes of ranks that behave alike, where not all ranks of a stage do: those in a class have
// groups in like classes, the groups of a class have members in the same classes of ranks and as
// much on links of each class, and the links of a class have one capacity and as much of each class
// of groups. It is the coarsest equitable partition of ranks, groups and links together (colour
// refinement; Berkholz, Bonsma & Grohe 2017), found by parting classes until none is parted.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/graph/task_graph.h"
#include "simulator/network/fabric.h"

namespace trainyard {

// Splits the ranks and groups of a folded graph; its groups' copies are shared out, its lists stay.
// `rank_of` has the rank that stands for each device and is given the new ones. False, and nothing
// is changed: there are more classes than a quarter of the devices, so that folding does not pay.
// Requires: a folded graph; no device is in two copies of a group.
bool part_ranks(Fabric& fabric, TaskGraph& graph, std::vector<std::int32_t>& rank_of);

}  // namespace trainyard
