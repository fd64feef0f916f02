// The links of a folded graph: those that carry the same traffic of every call, all copies of the
// groups added up, are one class, and one link stands for all of it.
//
// A max–min fair allocation gives all copies of a group one rate where (a) all links of a class
// have one capacity and carry as much of each call, and (b) all copies of a group use as many links
// of each class: an equitable partition of flows and links, on which progressive filling
// (Bertsekas & Gallager 1992, §6.5.2) never tells two members of a class apart. (a) holds by
// construction; (b) is checked, so placements and fabrics that are not symmetric are refused.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/expected.h"
#include "simulator/engine/phases.h"

namespace trainyard {

struct FoldedLinks {
  std::vector<BytesPerSecond> capacities;  // of the classes
  std::vector<std::int32_t> class_of;      // by link; −1: no call uses it
  // Of each group and call: its phases, on classes of links.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<CallPhase>> phases;
};

// Every group with every call that some rank makes on it.
std::vector<std::pair<std::int32_t, std::int32_t>> calls_in_use(const TaskGraph& graph);

// Fails, naming two groups, where copies of a group do not behave alike. Requires: a folded graph.
Expected<FoldedLinks> fold_links(const TaskGraph& graph, Fabric& fabric);

}  // namespace trainyard
