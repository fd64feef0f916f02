// What it costs that states and activations live outside the device: copies over the link to the
// host, beside the passes that need them. Both directions run at once; weights come for forward and
// again for backward, activations go in forward and come back, the gradients summed so far come and
// go beside the backward pass that adds to them, beside its second half where the halves are apart.
// Weights and gradients of a unit (embedding, layer, head) come while the one before it is at work.
// Memory at NVMe is not limited. ZeRO-Infinity (Rajbhandari et al. 2021), handbook §7.
#pragma once

#include "model/cost/memory/memory.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"

namespace trainyard {

// Between a device and memory outside it, one way.
BytesPerSecond bandwidth_to(const Cluster& cluster, OffloadTarget target);

// At which the host's processors update states that lie there: of a device's share.
BytesPerSecond update_bandwidth(const Cluster& cluster, OffloadTarget optimizer);

// What the layers of a stage keep of one micro-batch for backward and send away.
Bytes activations_sent_away(const Plan& plan, const StageCosts& costs, const StageParameters& stage,
                            Recompute recompute);

// Of the parameters of a stage: of one matrix at each end, of all layers.
struct UnitCopies {
  Seconds embedding, layers, head;
  Seconds total() const { return embedding + layers + head; }
};

// The copies of one micro-batch on a rank of a stage that visits all its chunks.
struct OffloadCopies {
  PassTimes beside;      // by the passes they run beside
  Seconds weights;       // of these, in each pass
  Seconds activations;   // of these, away in forward and back in backward
  UnitCopies by_unit;    // `weights`
  UnitCopies gradients;  // one way
  bool ends_meet =
      false;  // one matrix for both ends of every pass: it comes with the first of them
  int stage_layers = 0;
  bool parts = false;  // are gathered once they are there: they come two units ahead
  bool gradient_parts = false;
  bool sums_awaited = false;  // a backward pass ends when its sums have gone
  bool in_a_row = false;      // forward passes follow each other, then backward passes
  bool halves_apart = false;  // of backward: copies must be there for the first
  double chunks = 1;
  double layers = 1;   // of a chunk
  double leaving = 0;  // layers of the stage whose activations leave, the first ones
  bool turns = false;  // in the last chunk backward follows forward
};
OffloadCopies offload_copies(const PreparedJob& job, const Plan& plan, const StageParameters& stage,
                             Bytes activations);

// Of the passes of a stage, those of its ends.
struct EndPasses {
  PassTimes embedding, head;
};

// What of them outlasts the passes, of a micro-batch that visits a share of the chunks; and of the
// weights and gradients what stands before the first unit of a pass, or goes while a pipeline
// drains: a stage that waits for another one does not see it.
PassTimes exposed_copies(const OffloadCopies& copies, double share, const PassTimes& passes,
                         const EndPasses& ends);
Seconds copies_before_passes(const OffloadCopies& copies, double share, const PassTimes& passes,
                             const EndPasses& ends);

// Before its first gradient a stage has several forward passes whose activations leave one behind
// the other, and nothing comes back. In a V and where micro-batches go both ways these are as many
// as fit between: what they take longer than the way of the first micro-batch to its turn and back.
// On a loop with several chunks they follow each other on every stage, as many as on the last: what
// they take longer than these passes. Once a step; `layers`: passes of the stage's with all that
// they show.
Seconds copies_of_first_passes(const OffloadCopies& copies, const Plan& plan, int stage,
                               double share, const PassTimes& layers);

// Once a step: before the first pass, and behind the last.
struct CopiesAtEnds {
  Seconds start, end;
};
CopiesAtEnds copies_at_ends(const OffloadCopies& copies);

// Whether the weights of the passes lie outside the device, or the gradients.
bool weights_away(const Training& training, const Plan& plan);
bool gradients_away(const Plan& plan);

// Once a step, one after the other: what the sums of gradients, the norm and the optimizer need or
// write and do not find where they are made. Gradients that lie elsewhere come for the norm and
// again for the update; weights that lie whole elsewhere come in parts and go whole.
Seconds optimizer_crossing(const PreparedJob& job, const Plan& plan, const StageParameters& stage);

}  // namespace trainyard
