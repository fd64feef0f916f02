// A job: the network, the cluster that trains it and how it is trained. A job and a plan together
// have a cost. `prepare` derives once everything that all plans of a job share (parameter counts,
// FLOP, the tiers of the fabric), so that one estimate takes microseconds.
//
// `Job::training.stack` is the stack as its document describes it. Releases of the stack may behave
// differently on some devices or networks, and `prepare` resolves that. So before `prepare` a
// caller may put another network or other nodes into the job.
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

// The stack as this job runs it: the entries of `stack.releases` that match the job's release,
// recipe, device generation and network are applied, and an overlap slowdown that was measured on
// the device replaces the stack's figure.
Stack at_release(Stack stack, const Job& job);

using LayerCounts = std::array<int, kLayerKinds>;  // layers of each kind (index_of)

struct PreparedJob {
  Job job;                                 // with its stack resolved by at_release
  std::shared_ptr<LazyTopology> topology;  // of the cluster; null: the caller gave only its tiers
  FabricTiers tiers;                       // of the cluster
  // The next two are about the L layers that a plan deals to stages, without MTP layers.
  std::vector<LayerCounts> layers_before;  // [layer]: kinds of layers 0 … layer−1; L + 1 entries
  std::optional<LayerKind> only_kind;      // set if all L layers are of one kind
  std::array<LayerParameters, kLayerKinds> layer_parameters;
  EndParameters end_parameters;
  double parameters = 0, active_parameters = 0;
  SequenceFlop flop;                                    // with attention counted in full
  std::array<RepeatedFlop, kLayerKinds> repeated_flop;  // [kind]; 0 for kinds without a layer
  Flops model_flop;                                     // of one step, over all ranks

  // Layers of each kind among layers first … first + count − 1.
  LayerCounts layers_between(int first, int count) const;
  LayerCounts all_layers() const;  // MTP layers included
};

PreparedJob prepare(Job job);
// Requires: `tiers` are of the job's cluster.
PreparedJob prepare(Job job, FabricTiers tiers);

}  // namespace trainyard
