// The graph of model/cluster/topology.h itself. It has a header of its own because Boost.Graph
// takes a second to compile, and nearly all files that include the topology need only its tiers.
#pragma once

#include <boost/graph/adjacency_list.hpp>

#include "model/cluster/topology.h"

namespace trainyard {

struct TopologyGraph
    : boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Vertex, Link> {
  using adjacency_list::adjacency_list;
};

}  // namespace trainyard
