// The blocks of a plan's program: what every unit of the network (a layer, the embedding, the head)
// does in every pass, and what stands between the passes. Internal to model/program.
#pragma once

#include <array>
#include <vector>

#include "model/program/parts/parts.h"

namespace trainyard {

// The blocks that copy a unit's weights and gradients between host and device for one pass. `come`
// brings them before the pass, for its first units; `come_beside` brings them while an earlier unit
// runs; `go` takes gradients away after the unit.
struct CopyBlocks {
  int come = -1, come_beside = -1, go = -1;
};

// The blocks of one unit, as indices in Program::blocks; −1: nothing to do.
struct UnitBlocks {
  int forward = -1;
  int backward = -1;  // input and weight gradient in one
  int input_gradient = -1, weight_gradient = -1;
  // Under ZeRO-3: the gradient of the logits, with which the head's backward and input-gradient
  // passes begin.
  int loss_backward = -1, loss_input_gradient = -1;
  // All-gathers of its weights for a pass, if it has only a part of them: before the first unit of
  // the pass, or (fetch_next) while the unit before it runs.
  int fetch_forward = -1, fetch_backward = -1;
  int fetch_next_forward = -1, fetch_next_backward = -1;
  // Copies of its offloaded activations back to the device, before the first unit or (restore_next)
  // while the unit before it runs.
  int restore = -1, restore_next = -1;
  std::vector<Operation> restores;  // these copies, as they wait for nothing
  // Copies of its weights and gradients that lie outside the device, by pass.
  CopyBlocks forward_copies, backward_copies, input_copies, weight_copies;
  // Whether gradients of a pass are reduced to parts, or leave for the host; and which half of a
  // split backward pass makes them.
  bool sums = false, sums_with_input = false;
  int reduction = -1;            // of its gradients over data parallelism
  bool reduced_in_pass = false;  // in the last pass that adds to them, if the plan overlaps
  // Its part of the buckets that it is in; what is over other ranks than data-parallel ones stays
  // in `reduction`.
  std::vector<Operation> bucketed_sums, bucketed_gathers;
  int await_reduction = -1;  // under no_sync: the wait for it
  int late_reduction = -1;   // at the end of the step: of gradients on the host or kept in parts
  int mirror = -1;           // DualPipe: over the two stages that hold copies of the unit
  int norm = -1, update = -1, gather = -1;
};

// What the backward pass recomputes of a layer, and whether its saved activations leave the device.
struct LayerWay {
  Repeats repeats = Repeats::nothing;
  bool away = false;
  friend bool operator==(const LayerWay&, const LayerWay&) = default;
};
LayerWay way_of(const Lowering& lowering, int stage, int local_layer);
inline std::size_t index_of(LayerWay way) {
  return static_cast<std::size_t>(way.repeats) + (way.away ? kRepeats : 0);
}

// A boundary between two chunks: `away` if they are on different stages, `here` if on one.
struct BoundaryBlocks {
  int away = -1, here = -1;
};

// Units take turns, from pass to pass, with room for two on the device. By turn: the mark that a
// unit's transfer has ended, and the wait for it before the next unit of this turn begins.
struct TurnBlocks {
  std::array<int, 2> ended = {-1, -1}, wait = {-1, -1};
};

struct ProgramBlocks {
  // [way][layer kind], for the combinations that some stage has.
  std::array<std::array<UnitBlocks, kLayerKinds>, 2 * kRepeats> layers;
  UnitBlocks embedding, head;
  UnitBlocks mtp_embedding;  // before the MTP layers
  BoundaryBlocks send_forward, receive_forward;
  BoundaryBlocks send_gradient, receive_gradient;
  int pair_receive = -1, pair_send = -1;    // around two passes that run side by side
  int shared_first = -1, shared_last = -1;  // gradient sums of a matrix that two stages hold
  int norm_reduction = -1;
  // Marks that a pass, or the last layer of a backward pass, begins, for copies from the host.
  int pass_begins = -1, last_layer_begins = -1;
  // Of the layers whose activations leave, and of the units whose gradients are summed up.
  TurnBlocks leaving, summing;

  const std::array<UnitBlocks, kLayerKinds>& layers_that(LayerWay way) const {
    return layers[index_of(way)];
  }
};

ProgramBlocks make_blocks(Lowering& lowering);

}  // namespace trainyard
