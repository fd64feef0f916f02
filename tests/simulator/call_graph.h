// Task graphs that consist of collective calls only. Every member of a group begins the group's
// first call at time zero, and each further call when the one before it has ended.
#pragma once

#include <string_view>
#include <vector>

#include "model/cluster/group.h"
#include "simulator/simulate.h"

namespace trainyard {

Call named_call(CollectiveOperation operation, std::string_view algorithm, Bytes message);

// All groups of this shape that partition the ranks, each as its list of ranks.
std::vector<TaskGroup> sibling_groups(int ranks, GroupShape shape);

// Group i makes calls[i] `times` times, one after the other. A send goes from a group's first
// member to its second.
TaskGraph call_graph(int ranks, const std::vector<TaskGroup>& groups,
                     const std::vector<Call>& calls, int times = 1);

// The makespan of the graph in seconds. Requires: the graph can be played.
double seconds_taken(const TaskGraph& graph, const Cluster& cluster, const TopologyGraph& topology,
                     NetworkGrain grain);
// Plays the algorithm on all groups of the shape at once, with nothing else running, at both
// grains, and expects the time of its closed form to 1e-6. Returns false if the algorithm does not
// apply.
bool takes_its_closed_form(const Cluster& cluster, GroupShape shape,
                           const CollectiveAlgorithm& algorithm, Bytes message);
// For each group the time in seconds when its last call ends.
std::vector<double> group_seconds(const TaskGraph& graph, const Cluster& cluster,
                                  const TopologyGraph& topology, NetworkGrain grain);

}  // namespace trainyard
