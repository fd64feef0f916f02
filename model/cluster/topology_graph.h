// The graph of model/cluster/topology.h itself. Apart from it, since Boost.Graph takes a second to
// compile, while nearly all who include the topology want only what is read off it.
#pragma once

#include <boost/graph/adjacency_list.hpp>

#include "model/cluster/topology.h"

namespace trainyard {

struct TopologyGraph
    : boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Vertex, Link> {
  using adjacency_list::adjacency_list;
};

}  // namespace trainyard
