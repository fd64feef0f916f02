// A job: which network, on which cluster, trained how. With a plan it has a cost. `prepare` derives
// once what every plan of the job shares, so that an estimate is microseconds.
//
// A job's stack is the one that was asked for. What its releases do otherwise depends on the
// devices and the network: `prepare` resolves it for those of the job, so that another network or
// other nodes may take their place in the job before.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/topology.h"
#include "model/units.h"
#include "model/workload/flop.h"
#include "model/workload/stack.h"
#include "model/workload/training.h"
#include "model/workload/transformer.h"

namespace trainyard {

struct Job {
  Transformer model;
  Cluster cluster;
  Training training;
};

// `stack` as the release, the recipe, the devices and the network of the job have it; what a device
// was measured to do in place of the stack's figure.
Stack at_release(Stack stack, const Job& job);

using LayerCounts = std::array<int, kLayerKinds>;  // layers of each kind (index_of)

struct PreparedJob {
  Job job;                                 // its stack as the release has it (at_release)
  std::shared_ptr<LazyTopology> topology;  // the cluster's; none: only its tiers were given
  FabricTiers tiers;                       // of it
  // Of the L layers that a plan deals out, those of multi-token prediction left aside.
  std::vector<LayerCounts> layers_before;  // [layer]: kinds among layers 0 … layer−1; L + 1 entries
  std::optional<LayerKind> only_kind;      // where all layers are of one kind
  std::array<LayerParameters, kLayerKinds> layer_parameters;
  EndParameters end_parameters;
  double parameters = 0, active_parameters = 0;
  SequenceFlop flop;                                    // full attention
  std::array<RepeatedFlop, kLayerKinds> repeated_flop;  // of the kinds that the network has
  Flops model_flop;                                     // of a step

  // Kinds among layers first … first + count − 1.
  LayerCounts layers_between(int first, int count) const;
  LayerCounts all_layers() const;  // and those of multi-token prediction
};

PreparedJob prepare(Job job);
// Requires: `tiers` are of the job's cluster.
PreparedJob prepare(Job job, FabricTiers tiers);

}  // namespace trainyard
