// Task graphs of nothing but calls: every member of every group begins each of its group's calls at
// zero or when the one before is done.
#pragma once

#include <string_view>
#include <vector>

#include "model/cluster/group.h"
#include "simulator/simulate.h"

namespace trainyard {

Call named_call(CollectiveOperation operation, std::string_view algorithm, Bytes message);

// All groups of a shape that partition the ranks, as ranks.
std::vector<TaskGroup> sibling_groups(int ranks, GroupShape shape);

// Group i makes calls[i], `times` times one after the other. Sends go from a group's first member
// to its second.
TaskGraph call_graph(int ranks, const std::vector<TaskGroup>& groups,
                     const std::vector<Call>& calls, int times = 1);

// When all of it is done. Requires: it can be played.
double seconds_taken(const TaskGraph& graph, const Cluster& cluster, const TopologyGraph& topology,
                     NetworkGrain grain);
// Plays the algorithm alone, all groups of the shape at once, at both grains: expects its closed
// form, to 1e-6. False where it does not apply.
bool takes_its_closed_form(const Cluster& cluster, GroupShape shape,
                           const CollectiveAlgorithm& algorithm, Bytes message);
// When the calls of each group are done.
std::vector<double> group_seconds(const TaskGraph& graph, const Cluster& cluster,
                                  const TopologyGraph& topology, NetworkGrain grain);

}  // namespace trainyard
