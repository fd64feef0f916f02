// Fits what a fabric attains between nodes to measured collectives over whole nodes: α of a step,
// and the attained share of the NICs' sum, and the same of a protocol for small messages where the
// sizes span enough to tell the two apart (model/cluster/cluster.h). They hold for any operation
// and any number of nodes: the algorithms' formulas bring in the rest, so that a fit on two nodes
// speaks of sixteen. Deterministic.
#pragma once

#include <string>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/expected.h"
#include "model/units.h"

namespace trainyard {

// One collective over all devices of `nodes` nodes; bytes as handbook §6 counts the message.
struct FabricSample {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  int nodes = 2;
  Bytes bytes;
  Seconds time;
};

// On clusters of such nodes; `algorithm`: the one that ran, where it is known, else empty.
struct FabricProblem {
  Cluster cluster;
  std::string algorithm;
};

Seconds fabric_sample_time(const FabricProblem& problem, const FabricSample& sample);

// `cluster.inter` with these figures fitted. An error for fewer than four samples.
Expected<InterNode> fit_fabric(const FabricProblem& problem,
                               const std::vector<FabricSample>& samples);

}  // namespace trainyard
