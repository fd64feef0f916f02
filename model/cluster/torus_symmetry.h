// Symmetry of a torus for sibling groups that send at once. If shifting every node by some distance
// along a dimension maps each group onto another one, member by member, it maps their messages too.
// So it is enough to count the messages of one group of each orbit of these shifts.
// Example: a ring of 8 nodes and groups {0, 1}, {2, 3}, {4, 5}, {6, 7}: a shift by 2 maps them onto
// each other, and one group stands for all four.
//
// Needs routes that do not depend on absolute places. Those of model/cluster/routes.h do in one
// case: routed dimension by dimension, a way half-way round goes forward from even places and back
// from odd ones. That case does not arise: a shift by an odd distance along an even side cannot map
// groups onto each other if they have members half-way round it. (All groups of a shape have the
// same distances between their ranks; shifted half-way, such members would have changed sides.)
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace trainyard {

// Nodes in the order of their places: the first dimension is the fastest.
struct TorusNodes {
  std::vector<int> sides;  // nodes along each dimension; empty: it is no torus
  int devices = 1;         // of a node
  int domain = 1;          // nodes of one NVLink domain, which stay together
};

class TorusSymmetry {
 public:
  // Finds for each dimension the least shift that maps the groups onto each other; its side if none
  // does. Requires: `ranks` are groups of one shape, of `size` ranks each, one after the other.
  // O(ranks) for a shift that does; for most others a few ranks decide.
  TorusSymmetry(const TorusNodes& nodes, std::span<const int> ranks, std::size_t size);

  // Nodes of an orbit, and so groups of one; 1: there is no symmetry.
  std::size_t copies() const;
  // The node that stands for the orbit of `node`.
  int first(int node) const;

 private:
  std::vector<int> sides_, periods_;
};

}  // namespace trainyard
