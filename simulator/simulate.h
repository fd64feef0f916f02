// Plays a task graph in virtual time: discrete events, one thread, the same result to the bit on
// every run.
#pragma once

#include "model/cluster/cluster.h"
#include "model/cluster/topology.h"
#include "model/expected.h"
#include "simulator/network.h"
#include "simulator/task_graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// What carries the calls; rank r is device r of the topology.
struct NetworkModel {
  const Cluster& cluster;
  const TopologyGraph& topology;
  NetworkGrain grain = NetworkGrain::collective;
};

// Communication takes no time. Fails, with a sentence that names the tasks and ranks, on a graph
// that is malformed or dead-locks.
Expected<Timeline> simulate(const TaskGraph& graph);

// Communication shares the links of `network`. Fails also where a rank cannot be reached and where
// a group cannot run its algorithm.
Expected<Timeline> simulate(const TaskGraph& graph, const NetworkModel& network);

}  // namespace trainyard
