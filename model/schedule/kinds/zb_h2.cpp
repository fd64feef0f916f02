// ZB-H2 (Qi et al. 2023): stage i runs 2(p−i) − 1 forward passes first, which fill the bubble of
// ZB-H1; 2p − 1 micro-batches are in flight. Longest span m(F+B+W) + (p−1)(F+B−2W) for W ≤ F, and
// m(F+B+W) + (p−1)(B−F) for W > F. Steps follow each other at one span: the optimizer's global
// checks are made after the fact (post-validation).
#include "model/schedule/span.h"
#include "model/schedule/zero_bubble.h"

namespace trainyard::kinds {
namespace {

Expected<void> accepts(PipelineShape shape) { return accepts_one_chunk(shape, "zb-h2"); }

ZeroBubbleStage at(PipelineShape shape, int stage) {
  return {.ahead = 2 * (shape.stages - stage) - 1, .delay = 2 * stage};
}

bool in_domain(PipelineShape shape, PassTimes times) {
  return shape.microbatches >= 2 * shape.stages - 1 || times.forward <= times.input_gradient;
}

}  // namespace

extern const Schedule zb_h2 = zero_bubble_schedule<at>(
    {.name = "zb-h2", .optimizer_barrier = false, .accepts = accepts, .in_domain = in_domain});

}  // namespace trainyard::kinds
