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

// Handbook §7: (p−i−1)·2 + (v−1)·p + 1 forward passes before the first backward pass, at most m·v.
int chunks_in_flight(PipelineShape shape, int stage) {
  const std::int64_t ahead = std::int64_t{shape.chunks - 1} * shape.stages;
  const std::int64_t all = std::int64_t{shape.microbatches} * shape.chunks;
  return static_cast<int>(std::min(all, std::int64_t{shape.stages - stage - 1} * 2 + ahead + 1));
}

// The k-th forward or backward pass of a stage; backward passes take the chunks from the last on.
Pass nth(PipelineShape shape, PassKind kind, int k) {
  const int group = shape.stages * shape.chunks;
  const int chunk = k % group / shape.stages;
  return {kind, k / group * shape.stages + k % shape.stages,
          kind == PassKind::forward ? chunk : shape.chunks - 1 - chunk};
}

// Walks through the chunks of a stage's forward passes, in order.
class ChunkWalk {
 public:
  explicit ChunkWalk(PipelineShape shape) : shape_(shape), left_(shape.stages) {}

  std::size_t next() {
    if (left_ == 0) {
      left_ = shape_.stages;
      chunk_ = chunk_ + 1 < shape_.chunks ? chunk_ + 1 : 0;
    }
    --left_;
    return static_cast<std::size_t>(chunk_);
  }

 private:
  PipelineShape shape_;
  int left_;
  int chunk_ = 0;
};

// The largest sum after a forward pass of the steady state, which repeats itself after p·v passes.
Bytes most_kept(PipelineShape shape, int stage, std::span<const Bytes> of_chunks) {
  const int ahead = chunks_in_flight(shape, stage) - 1;
  const int steady = shape.microbatches * shape.chunks - ahead;
  const std::size_t last = of_chunks.size() - 1;
  ChunkWalk forward(shape), backward(shape);
  Bytes now, most;
  for (int k = 0; k < ahead; ++k) now += of_chunks[forward.next()];
  for (int k = 0; k < std::min(steady, shape.stages * shape.chunks); ++k) {
    now += of_chunks[forward.next()];
    most = std::max(most, now);
    now -= of_chunks[last - backward.next()];
  }
  return most;
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
    .most_kept = most_kept,
};

}  // namespace trainyard::kinds
