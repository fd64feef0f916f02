// What it costs that states and activations live outside the device: copies over the link to the
// host, beside the passes that need them. Both directions run at once; weights come for forward and
// again for backward, activations go in forward and come back, the gradients summed so far come and
// go beside the weight gradients. The memory of the hosts is not limited. ZeRO-Infinity
// (Rajbhandari et al. 2021), handbook §7.
#pragma once

#include "model/cost/memory.h"
#include "model/cost/stage_parameters.h"
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

// The copies of one micro-batch on a rank of a stage that visits all its chunks.
struct OffloadCopies {
  PassTimes beside;           // by the passes they run beside
  Seconds weights;            // of these, in each pass
  Seconds activations;        // of these, away in forward and back in backward
  bool in_a_row = false;      // forward passes follow each other, then backward passes
  bool halves_apart = false;  // of backward: copies must be there for the first
  double chunks = 1;
  double layers = 1;   // of a chunk
  bool turns = false;  // in the last chunk backward follows forward
};
OffloadCopies offload_copies(const PreparedJob& job, const Plan& plan, const StageParameters& stage,
                             Bytes activations);

// What of them outlasts the passes, of a micro-batch that visits a share of the chunks. `ends`: of
// the passes, embedding and output head.
PassTimes exposed_copies(const OffloadCopies& copies, double share, const PassTimes& passes,
                         const PassTimes& ends);

// Once a step, a parameter of the rank's shard: what the optimizer needs or writes and does not
// find where it lives itself.
Bytes optimizer_crossing(const Training& training, const Plan& plan);

}  // namespace trainyard
