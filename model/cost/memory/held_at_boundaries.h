// Memory that the engine of a pipeline (torch.distributed.pipelining) holds for messages between
// chunks, beside the activations that layers keep: receive buffers for every micro-batch, all the
// time, and outputs and gradients that were sent (Stack::pipeline_receive_buffers and the keys
// after it). Zero under a stack without such an engine, and where activations leave the device.
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

  // What the stage holds whatever is in flight. Messages that stay to the end of the step are
  // counted as after the last forward pass: from then on each backward pass frees more than it
  // adds.
  Bytes standing() const;
  // What one micro-batch in flight holds on a chunk whose layers keep `kept` bytes of it: less the
  // chunk's input, which lies in its receive buffer, and less that input's gradient where
  // standing() has it; plus the chunk's output until its backward pass.
  Bytes in_flight(int chunk, Bytes kept) const;

 private:
  struct Boundaries {
    bool receives = false, sends = false;         // has a chunk before it, after it
    bool from_others = false, to_others = false;  // … and that chunk is on another stage
  };
  Boundaries boundaries_of(int chunk) const;

  const Stack& stack_;
  int stage_;
  PipelineShape shape_;
  bool holds_ = false;
  Bytes message_;      // of one micro-batch
  double visits_ = 0;  // micro-batches that visit a chunk in a step
};

}  // namespace trainyard
