// The blocks of a plan: what every unit of the network does in every pass, and what stands between
// the passes. Internal to model/program.
#pragma once

#include <array>

#include "model/program/parts/parts.h"

namespace trainyard {

// The copies of one pass of a unit. What it needs from outside the device comes before the pass
// where the unit is among the first (`come`), beside an earlier unit where it is not
// (`come_beside`); what goes out of the device goes behind it.
struct CopyBlocks {
  int come = -1, come_beside = -1, go = -1;
};

// Indices in Program::blocks; −1: nothing to do.
struct UnitBlocks {
  int forward = -1;
  int backward = -1;  // input and weight gradient in one
  int input_gradient = -1, weight_gradient = -1;
  // Of the head under ZeRO-3, what these two begin with: the gradient of its logits.
  int loss_backward = -1, loss_input_gradient = -1;
  // Its weights, where they are gathered for a pass: before its first unit, or beside the one
  // before.
  int fetch_forward = -1, fetch_backward = -1;
  int fetch_next_forward = -1, fetch_next_backward = -1;
  // Its activations, where they come back from the host: before its first unit, or beside the one
  // before. And the wait until they have gone.
  int restore = -1, restore_next = -1, await_copies = -1;
  // Its weights and gradients, where they lie outside the device.
  CopyBlocks forward_copies, backward_copies, input_copies, weight_copies;
  // The wait for the sums that a pass leaves, of this rank's part or on their way to the host, and
  // which half of a backward pass makes them.
  int await_sums = -1;
  bool sums_with_input = false;
  int reduction = -1;            // of its gradients
  bool reduced_in_pass = false;  // by the last one that adds to them, where the plan overlaps
  int await_reduction = -1;      // where whole gradients add up over all micro-batches
  int late_reduction = -1;       // of those that were on the host by then, or are kept in parts
  int mirror = -1;               // and over the two stages that hold copies of it
  int norm = -1, update = -1, gather = -1;
};

// What backward repeats of a layer, and whether what it keeps leaves the device.
struct LayerWay {
  Repeats repeats = Repeats::nothing;
  bool away = false;
  friend bool operator==(const LayerWay&, const LayerWay&) = default;
};
LayerWay way_of(const Lowering& lowering, int stage, int local_layer);
inline std::size_t index_of(LayerWay way) {
  return static_cast<std::size_t>(way.repeats) + (way.away ? kRepeats : 0);
}

// Between two chunks: on different stages, or on one.
struct BoundaryBlocks {
  int away = -1, here = -1;
};

struct ProgramBlocks {
  // By way, then by layer kind: where a stage has such layers.
  std::array<std::array<UnitBlocks, kLayerKinds>, 2 * kRepeats> layers;
  UnitBlocks embedding, head;
  UnitBlocks mtp_embedding;  // before the MTP layers
  BoundaryBlocks send_forward, receive_forward;
  BoundaryBlocks send_gradient, receive_gradient;
  int pair_receive = -1, pair_send = -1;    // around two passes side by side
  int shared_first = -1, shared_last = -1;  // of one matrix on two stages
  int norm_reduction = -1;
  int pass_begins = -1;  // where states come from the host

  const std::array<UnitBlocks, kLayerKinds>& layers_that(LayerWay way) const {
    return layers[index_of(way)];
  }
};

ProgramBlocks make_blocks(Lowering& lowering);

}  // namespace trainyard
