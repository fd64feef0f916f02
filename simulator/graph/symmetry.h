// The links of a folded graph, grouped into classes: links that carry the same traffic of every
// call, summed over all copies of the groups, are one class, and one link stands for all of it. For
// example, the links of 8 replicas to their NVLink switch carry the same traffic of the gradients'
// all-reduce.
//
// A max–min fair allocation gives all copies of a group the same rate if (a) all links of a class
// have the same capacity and the same traffic of each call, and (b) all copies of a group use
// equally many links of each class: on such an equitable partition of flows and links, progressive
// filling (Bertsekas & Gallager 1992, §6.5.2) never tells two members of a class apart. (a) holds
// by construction; (b) is checked, so placements and fabrics that are not symmetric are refused.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/expected.h"
#include "simulator/engine/phases.h"

namespace trainyard {

struct FoldedLinks {
  std::vector<BytesPerSecond> capacities;  // of each class
  std::vector<std::int32_t> class_of;      // of each link; −1: no call uses it
  // The phases of each {group, call}; their links are classes of links.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<CallPhase>> phases;
};

// All pairs {group, call} such that some rank makes the call on the group.
std::vector<std::pair<std::int32_t, std::int32_t>> calls_in_use(const TaskGraph& graph);

// Fails, naming two copies, where copies of a group do not behave alike. Requires: a folded graph.
Expected<FoldedLinks> fold_links(const TaskGraph& graph, Fabrics& fabric);

}  // namespace trainyard
