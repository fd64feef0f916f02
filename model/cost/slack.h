// What stages of a pipeline have time for while they wait for each other: what they add to the ends
// of a step, and what their passes lose to communication of parameters beside them.
#pragma once

#include <span>
#include <vector>

#include "model/cost/messages/traffic.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

// What one stage adds to the ends of the step, and of its data-parallel traffic of one micro-batch
// what stands at the ends of its passes.
struct StageEnds {
  Seconds start, end;
  Seconds lost;     // by the last micro-batch's passes to the reductions beside them
  Seconds reduced;  // in that time
  // Weights that come beside the first micro-batch's passes, and what those lose in a second of it.
  Seconds gathered;
  double lost_to_gathers = 0;
  // Reductions behind the last pass, and what the passes take from the first gradients on: a stage
  // that waits for a slower one has as much more time for the former.
  Seconds queued;
  Seconds at_ends_of_passes, optimizer;
  Seconds copies;  // of `start` and `end`, from the hosts and to them
  BesideRamps beside_ramps;
};

// What a stage's passes of one micro-batch grow by once a step.
struct StageLosses {
  Seconds filling;   // of the first one's forward passes
  Seconds draining;  // of the last one's backward passes
  Seconds reduced;   // communication beside the latter
  double layers_of_chunk = 1;
};

// A stage begins when the first micro-batch has come to it, and ends while the last one goes back
// through the stages before it: what it does in that time delays nobody. Passes of split halves
// stand behind each other in other ways.
class Slack {
 public:
  // `losses` is filled.
  Slack(const Plan& plan, std::vector<StageLosses>& losses);
  StageEnds off(StageEnds ends) const;
  // A stage of so many layers.
  void pass(const PassTimes& stage, const StageEnds& ends, int layers);
  Seconds longest() const { return longest_; }
  // What the step grows by. Requires: `passes` of all stages.
  Seconds lost(std::span<const PassTimes> passes) const;

 private:
  Seconds lost_to_gathers(const StageEnds& ends) const;

  const Schedule& schedule_;
  PipelineShape shape_;
  bool applies_ = false;
  double chunks_ = 1;
  std::vector<StageLosses>& losses_;
  Seconds before_, behind_, most_lost_, longest_;
};

}  // namespace trainyard
