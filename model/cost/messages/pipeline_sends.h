// What micro-batches take from a stage of a pipeline to the next (handbook §4), and how much of it
// shows in a step.
#pragma once

#include <span>

#include "model/cost/messages/traffic.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

// Time of the message that one micro-batch sends from a stage to the next, or its gradient back.
// Neighbouring stages inside one NVLink domain use its links, all others those between domains.
// Example: 8 stages, 4 in a domain: stages 3 → 4 and 7 → 0 take `between`, the rest `within`.
struct PipelineSends {
  Seconds within;   // inside a domain; 0 unless domains hold several stages, but not all
  Seconds between;  // the slowest of all other sends; that from the last stage to the first is
                    // among them if there is one (a loop of several chunks a stage)
  int stages_in_domain = 1;  // consecutive stages of one domain, where `within` is used
  // The stages that send so, in a row: all of a pipeline, or those on one kind of nodes. A stage
  // beside them counts as lying in the next domain.
  int first_stage = 0, stages = 1;
  // On routed fabrics sends between domains take unlike times: `latency` + `bytes` times the
  // domain's of `hops`. Else empty.
  std::span<const double> hops;
  Seconds latency, bytes;
  bool loops = false;  // the last stage sends to the first one

  // From `stage` to the next one; −1: from the last stage to the first.
  Seconds behind(int stage) const;
  // From the first of these stages to the last.
  Seconds on_the_way() const;
  // The same, and from the last stage back to the first.
  Seconds around() const { return on_the_way() + behind(first_stage - 1); }
};
// So many times as long.
PipelineSends operator*(double times, PipelineSends sends);
PipelineSends pipeline_sends(const PreparedJob& job, const Plan& plan, const PlanLinks& links);

// What sends to and from other stages add to the passes of one micro-batch on a stage.
//
// Not overlapped: the full time of all messages that the stage sends, each at the pace of the
// slowest boundary, because every stage waits for its neighbours as they wait for theirs. (14.6 B
// on two nodes, one boundary of fifteen between them, interleaved stages: predicted 2 % too fast
// this way, 4 to 9 % if each boundary has its own time. Qi et al. 2023.) On routed fabrics, where
// boundaries between domains differ, the mean of the stage's own two, as in the simulation.
//
// Overlapped: the compute that is lost beside messages sent and received, because NCCL's kernels
// hold multiprocessors while they wait (Stack::overlap_slowdown). (Without it 13 B and 70 B on 16
// and 64 H100 with one layer a chunk are predicted 7 and 4 % too fast, and those with four right:
// NeMo 24.07.)
PassTimes sends_in_passes(const Stack& stack, const Plan& plan, const PipelineSends& sends,
                          int stage);

// Gathers of weights or reductions of gradients that go on while a pipeline fills or drains: for
// how long, and how many times as long a send takes that shares links with them.
struct BesideSends {
  Seconds time;
  double stretch = 1;
};
struct BesideRamps {
  BesideSends filling, draining;
};

// What overlapped sends add to the step once, beyond sends_in_passes(). `passes`: of one
// micro-batch, stage by stage; where stages hold several chunks, those of each stage in a row.
//
// With one chunk a stage: the sends of one micro-batch's way to the last stage and back, when no
// compute is beside them, less what the passes on both sides of each send were charged already.
// With several chunks: in each further round of the first and of the last micro-batch, its sends as
// far as they exceed the time that the stages wait for the slowest one anyway; all these sends
// share links with `beside`.
Seconds fill_time(const Stack& stack, const Plan& plan, std::span<const PassTimes> passes,
                  const PipelineSends& sends, const BesideRamps& beside);
// How much overlapped sends delay 1F1B in its steady phase. Of k consecutive stages, the first has
// k micro-batches in flight, so k micro-batches take as long as one needs through all k stages and
// back: the stages' passes and 2(k − 1) sends. Where that exceeds k passes of the slowest stage,
// the difference is added for every k micro-batches (`fill_time` has the first micro-batch).
// Example: two stages of 10 ms each and sends of 1 ms: 22 ms for two micro-batches instead of 20.
// DualPipe's pairs of passes are the same: before each a stage waits for its neighbours.
Seconds waits_for_sends(const Plan& plan, std::span<const PassTimes> passes,
                        const PipelineSends& sends);

}  // namespace trainyard
