// 1F1B (PipeDream-Flush; Narayanan et al. 2021): stage i runs p − i − 1 forward passes, then one
// forward and one backward pass in turn, so that at most p − i micro-batches are in flight.
#include <algorithm>

#include "model/schedule/span.h"

namespace trainyard::kinds {
namespace {

Expected<void> accepts(PipelineShape shape) { return accepts_one_chunk(shape, "1f1b"); }

int chunks_in_flight(PipelineShape shape, int stage) {
  return std::min(shape.microbatches, shape.stages - stage);
}

PassList passes(PipelineShape shape) {
  PassList list(static_cast<std::size_t>(shape.stages));
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::vector<Pass>& mine = list[static_cast<std::size_t>(stage)];
    const int ahead = chunks_in_flight(shape, stage) - 1;
    for (int i = 0; i < ahead; ++i) mine.push_back({PassKind::forward, i, 0});
    for (int i = 0; i < shape.microbatches; ++i) {
      if (i + ahead < shape.microbatches) mine.push_back({PassKind::forward, i + ahead, 0});
      mine.push_back({PassKind::backward, i, 0});
    }
  }
  return list;
}

}  // namespace

extern const Schedule one_f_one_b = {
    .name = "1f1b",
    .splits_backward = false,
    .needs_chunks = false,
    .route = Route::loop,
    .optimizer_barrier = true,
    .accepts = accepts,
    .passes = passes,
    .in_domain = always_in_domain,
    .closed_span = one_f_one_b_span,
    .closed_makespan = one_f_one_b_span,
    .fill = fill_of_one_chunk,
    .chunks_in_flight = chunks_in_flight,
};

}  // namespace trainyard::kinds
