// Interleaved 1F1B (Narayanan et al. 2021, §2.2; Megatron-LM): each stage holds v chunks, and
// micro-batches pass in groups of p through chunk 0 of all stages, then chunk 1, and so on.
#include <fmt/format.h>

#include <algorithm>

#include "model/schedule/span.h"

namespace trainyard::kinds {
namespace {

Expected<void> accepts(PipelineShape shape) {
  if (shape.stages < 2) {
    return failure(
        "/plan/pipeline_parallel",
        fmt::format("found {} with interleaved-1f1b, allowed 2 or more; nearest 2", shape.stages));
  }
  if (shape.chunks < 2) {
    return failure(
        "/plan/virtual_stages",
        fmt::format("found {} with interleaved-1f1b, allowed 2 or more; nearest 2", shape.chunks));
  }
  if (shape.microbatches % shape.stages != 0) {
    return failure("/plan/micro_batch",
                   fmt::format("found {} micro-batches a step with interleaved-1f1b, allowed a "
                               "multiple of pipeline_parallel {}",
                               shape.microbatches, shape.stages));
  }
  return {};
}

// Handbook §7: (p−i−1)·2 + (v−1)·p forward passes ahead and one more, m·v at most.
int chunks_in_flight(PipelineShape shape, int stage) {
  const std::int64_t ahead = std::int64_t{shape.chunks - 1} * shape.stages;
  const std::int64_t all = std::int64_t{shape.microbatches} * shape.chunks;
  return static_cast<int>(std::min(all, std::int64_t{shape.stages - stage - 1} * 2 + ahead + 1));
}

// The k-th forward or backward pass of a stage; backward takes the chunks from the last.
Pass nth(PipelineShape shape, PassKind kind, int k) {
  const int group = shape.stages * shape.chunks;
  const int chunk = k % group / shape.stages;
  return {kind, k / group * shape.stages + k % shape.stages,
          kind == PassKind::forward ? chunk : shape.chunks - 1 - chunk};
}

PassList passes(PipelineShape shape) {
  PassList list(static_cast<std::size_t>(shape.stages));
  const int all = shape.microbatches * shape.chunks;
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::vector<Pass>& mine = list[static_cast<std::size_t>(stage)];
    const int ahead = chunks_in_flight(shape, stage) - 1;
    for (int k = 0; k < ahead; ++k) mine.push_back(nth(shape, PassKind::forward, k));
    for (int k = 0; k < all; ++k) {
      if (k + ahead < all) mine.push_back(nth(shape, PassKind::forward, k + ahead));
      mine.push_back(nth(shape, PassKind::backward, k));
    }
  }
  return list;
}

}  // namespace

extern const Schedule interleaved_one_f_one_b = {
    .name = "interleaved-1f1b",
    .splits_backward = false,
    .needs_chunks = true,
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
