// Fits what a fabric attains between nodes to measured collectives over whole nodes: α of a step
// and the attained share of the NICs' total bandwidth; and the same two for a protocol for small
// messages if the sizes span enough to tell the protocols apart (model/cluster/cluster.h). The
// figures hold for any operation and number of nodes, because the algorithms' formulas supply the
// rest: a fit on two nodes predicts sixteen. Deterministic.
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

// `cluster` gives the nodes and the fabric; `algorithm` is the one that ran, or empty if unknown.
struct FabricProblem {
  Cluster cluster;
  std::string algorithm;
};

Seconds fabric_sample_time(const FabricProblem& problem, const FabricSample& sample);

// Returns `cluster.inter` with the fitted figures; an error for fewer than four samples.
Expected<InterNode> fit_fabric(const FabricProblem& problem,
                               const std::vector<FabricSample>& samples);

}  // namespace trainyard
