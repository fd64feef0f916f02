// How much of what each stage adds to the ends of a step (gathers of weights, reductions of
// gradients) is hidden because other stages make the step wait anyway.
//
// A stage begins when the first micro-batch has come to it, and its last passes end while the last
// micro-batch still goes back through the stages before it. What it does in that time delays
// nobody. Example: a stage whose first forward pass begins after 30 ms gathers 20 ms of weights for
// free. Likewise a pass that grows delays the step only as far as no other stage is slower.
//
// Holds for routes in a loop with whole backward passes; else nothing is taken off.
#pragma once

#include <span>
#include <vector>

#include "model/cost/messages/pipeline_sends.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

// What one stage adds to the step once (DataParallelCost, with copies to and from the hosts).
struct StageEnds {
  Seconds start, end;  // before the stage's first pass, behind its last
  Seconds lost;        // the last micro-batch's passes grow by this for reductions beside them
  Seconds reduced;     // these reductions
  // Gathers of weights beside the first micro-batch's passes, and the seconds by which these grow
  // for each second of them.
  Seconds gathered;
  double lost_to_gathers = 0;
  // ZeRO-2: DataParallelCost::queued + (m − 1) of the stage's own passes. Less (m − 1) passes of
  // the slowest stage, for which this one waits, that is what is left behind its last pass.
  Seconds queued;
  // Exposed traffic at the ends of one micro-batch's passes; the optimizer step.
  Seconds at_ends_of_passes, optimizer;
  Seconds copies;  // the part of `start` and `end` that is copies from the hosts and to them
  PassTimes more_with_embedding, more_with_head;  // as DataParallelCost has them
  BesideRamps beside_ramps;
};

// By how much passes of a stage grow once a step, for communication of parameters beside them.
struct StageLosses {
  Seconds filling;               // the first micro-batch's forward passes
  Seconds draining;              // the last micro-batch's backward passes
  Seconds reduced;               // the reductions beside the latter
  double messages_of_chunk = 1;  // in which its gradients are reduced
};

// Takes the stages of a pipeline one by one, from the first to the last.
class Slack {
 public:
  // pass() appends to `losses`, which is emptied here and outlives this.
  Slack(const Plan& plan, std::vector<StageLosses>& losses);
  // The ends of the stage after those that pass() has taken, less what these hide of them.
  StageEnds off(StageEnds ends) const;
  // `stage`: its passes of one micro-batch; `ends`: before off(); `messages`: in which all of the
  // stage's gradients are reduced.
  void pass(const PassTimes& stage, const StageEnds& ends, int messages);
  Seconds longest() const { return longest_; }  // the slowest stage's passes so far
  // By how much the step grows for what the passes lose. Requires: `passes` of all stages, each of
  // which pass() has taken.
  Seconds lost(std::span<const PassTimes> passes) const;

 private:
  Seconds lost_to_gathers(const StageEnds& ends) const;

  const Schedule& schedule_;
  PipelineShape shape_;
  bool applies_ = false;
  double chunks_ = 1;
  std::vector<StageLosses>& losses_;
  // before_, behind_: a micro-batch's way through one chunk of all stages so far, forward and back.
  Seconds before_, behind_, most_lost_, longest_;
};

}  // namespace trainyard
