// ZB-H1 (Qi et al. 2023): 1F1B with a split backward, whose weight gradients are delayed so that
// every stage holds p micro-batches. Longest span m(F+B+W) + (p−1)(F+B−W) for W ≤ F. With W > F it
// is m(F+B+W) + (p−1)B, because with p micro-batches in flight stage 0 cannot start its first input
// gradient before pF + (p−1)B.
#include "model/schedule/span.h"
#include "model/schedule/zero_bubble.h"

namespace trainyard::kinds {
namespace {

Expected<void> accepts(PipelineShape shape) { return accepts_one_chunk(shape, "zb-h1"); }

ZeroBubbleStage at(PipelineShape shape, int stage) {
  return {.ahead = shape.stages - stage, .delay = stage};
}

}  // namespace

extern const Schedule zb_h1 = zero_bubble_schedule<at>({.name = "zb-h1",
                                                        .optimizer_barrier = true,
                                                        .accepts = accepts,
                                                        .in_domain = always_in_domain});

}  // namespace trainyard::kinds
