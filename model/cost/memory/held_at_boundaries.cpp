#include "model/cost/memory/held_at_boundaries.h"

#include <algorithm>

#include "model/plan/layer_shard.h"
#include "model/workload/operators.h"

namespace trainyard {

// Where activations leave the device a layer's input may be away.
HeldAtBoundaries::HeldAtBoundaries(const PreparedJob& job, const Plan& plan, int stage)
    : stack_(job.job.training.stack), stage_(stage), shape_(pipeline_shape(plan)) {
  holds_ = stack_.pipeline_receive_buffers && shape_.stages > 1 &&
           plan.offload.activations == OffloadTarget::none;
  if (!holds_) return;
  message_ = layer_input_bytes(job.job.model, job.job.training, layer_shard(plan));
  visits_ = static_cast<double>(plan.microbatches) * shape_.chunks / chunks_held(shape_);
}

Bytes HeldAtBoundaries::standing() const {
  if (!holds_) return Bytes(0);
  int messages = 0;
  for (int chunk = 0; chunk < chunks_held(shape_); ++chunk) {
    const Boundaries at = boundaries_of(chunk);
    messages += (at.receives ? 1 : 0) + (at.sends ? 1 : 0);
    messages += at.to_others && stack_.pipeline_keeps_outputs ? 1 : 0;
    messages += at.from_others && stack_.pipeline_keeps_gradients ? 1 : 0;
  }
  return messages * visits_ * message_;
}

Bytes HeldAtBoundaries::in_flight(int chunk, Bytes kept) const {
  if (!holds_) return kept;
  const Boundaries at = boundaries_of(chunk);
  const bool gradient = at.from_others && stack_.pipeline_keeps_gradients;
  const bool output = at.to_others && !stack_.pipeline_keeps_outputs;
  const int less = (at.receives ? 1 : 0) + (gradient ? 1 : 0);
  return std::max(Bytes(0), kept - less * message_) + (output ? message_ : Bytes(0));
}

HeldAtBoundaries::Boundaries HeldAtBoundaries::boundaries_of(int chunk) const {
  const int position = layer_chunk_of(shape_, {stage_, chunk});
  const auto is_here = [&](int other) { return place_of(shape_, 0, other).stage == stage_; };
  Boundaries at{.receives = position > 0, .sends = position + 1 < layer_chunks(shape_)};
  at.from_others = at.receives && !is_here(position - 1);
  at.to_others = at.sends && !is_here(position + 1);
  return at;
}

}  // namespace trainyard
