// What the engine of a pipeline (torch.distributed.pipelining) holds of activations and gradients
// that go from chunk to chunk, beside what layers keep: buffers in which they come, of every
// micro-batch throughout; and what was sent. Under a stack without such an engine, nothing.
// Internal to model/cost and planner.
#pragma once

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

class HeldAtBoundaries {
 public:
  HeldAtBoundaries(const PreparedJob& job, const Plan& plan, int stage);

  // Whatever is in flight. Of what stays to the end of the step, as much as there is when the last
  // forward pass is over: from then on a backward pass gives back more than it leaves.
  Bytes standing() const;
  // What a micro-batch in flight has of a chunk whose layers keep `kept` of it: not their input,
  // which lies in the buffer in which it came, nor the gradient of that, which `standing` has.
  Bytes in_flight(int chunk, Bytes kept) const;

 private:
  struct Boundaries {
    bool receives = false, sends = false;         // a chunk before it, a chunk behind it
    bool from_others = false, to_others = false;  // … on another stage
  };
  Boundaries boundaries_of(int chunk) const;

  const Stack& stack_;
  int stage_;
  PipelineShape shape_;
  bool holds_ = false;
  Bytes message_;      // of a micro-batch
  double visits_ = 0;  // of a chunk, in a step
};

}  // namespace trainyard
