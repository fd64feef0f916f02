// How a torus repeats itself for sibling groups that send at once. Where moving every node so far
// along a dimension carries each group to another one, member by member, it carries what they send
// too: one group of each such orbit tells what all put on the links.
//
// Holds for the routes of model/cluster/routes.h, which depend on places in one case: half-way
// round, dimension by dimension, goes forward from even ones and back from odd ones. Groups of one
// shape all have the same distances between their ranks. So none that is carried an odd distance
// along an even side has members half-way round it: carried half-way, they would have changed
// sides.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace trainyard {

// Nodes in the order of their places: the first dimension is the fastest.
struct TorusNodes {
  std::vector<int> sides;  // by dimension; none: it is no torus
  int devices = 1;         // of a node
  int domain = 1;          // nodes of one NVLink domain, which stay together
};

class TorusSymmetry {
 public:
  // By dimension the least distance that carries the groups to one another; its side where none
  // does. Requires: groups of one shape, of `size` ranks, one after the other. O(ranks) for a
  // distance that does; for most others a few ranks tell.
  TorusSymmetry(const TorusNodes& nodes, std::span<const int> ranks, std::size_t size);

  // Nodes, and so groups, of an orbit; 1: there is no symmetry.
  std::size_t copies() const;
  // The one that stands for the orbit of a node, or of what lies there.
  int first(int node) const;

 private:
  std::vector<int> sides_, periods_;
};

}  // namespace trainyard
