// ZB-V (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory"): two chunks a stage in the
// shape of a V, so that a micro-batch turns round on the last stage at once. Activations of p
// micro-batches, as in 1F1B; no bubble when F = B = W. Steps follow each other at one span.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/schedule/schedule.h"

namespace trainyard::kinds {
namespace {

Expected<void> accepts(PipelineShape shape) {
  if (shape.chunks == 2) return {};
  return failure("/plan/virtual_stages",
                 fmt::format("found {} with zb-v, allowed 2", shape.chunks));
}

// Builds one stage's list. It counts passes for as many micro-batches as fill the pipeline, and
// leaves out those of micro-batches that the step does not have.
class StageList {
 public:
  StageList(PipelineShape shape, int stage) : shape_(shape), stage_(stage) {}

  std::vector<Pass> passes() {
    if (shape_.stages == 1) return without_pipeline();
    warm_up();
    const int all = std::max(shape_.microbatches, 2 * shape_.stages - 1);
    while (next(kBack).forward < all) {
      if (next(kOut).forward < all) forward(kOut);
      whole_backward(kOut);
      forward(kBack);
      whole_backward(kBack);
    }
    cool_down();
    return std::move(list_);
  }

 private:
  static constexpr int kOut = 0;   // the chunk on the way to the last stage
  static constexpr int kBack = 1;  // the chunk on the way back
  struct Next {
    int forward = 0, input_gradient = 0, weight_gradient = 0;  // the next micro-batch of each pass
  };

  std::vector<Pass> without_pipeline() {
    for (int i = 0; i < shape_.microbatches; ++i) {
      add(PassKind::forward, i, kOut);
      add(PassKind::forward, i, kBack);
      add(PassKind::backward, i, kBack);
      add(PassKind::backward, i, kOut);
    }
    return std::move(list_);
  }

  void warm_up() {
    const int behind = shape_.stages - stage_;
    for (int i = 0; i < 2 * behind - 1; ++i) forward(kOut);
    for (int i = 0; i < stage_; ++i) {
      forward(kBack);
      forward(kOut);
    }
    for (int i = 0; i < behind; ++i) {
      forward(kBack);
      whole_backward(kBack);
    }
  }

  void cool_down() {
    for (int i = 0; i < stage_; ++i) {
      input_gradient(kOut);
      input_gradient(kBack);
    }
    for (int i = stage_; i < shape_.stages; ++i) {
      input_gradient(kOut);
      weight_gradient(kOut);
    }
    for (const int chunk : {kBack, kOut}) {
      while (next(chunk).weight_gradient < next(chunk).input_gradient) weight_gradient(chunk);
    }
  }

  void forward(int chunk) { add(PassKind::forward, next(chunk).forward++, chunk); }
  void input_gradient(int chunk) {
    add(PassKind::input_gradient, next(chunk).input_gradient++, chunk);
  }
  void weight_gradient(int chunk) {
    add(PassKind::weight_gradient, next(chunk).weight_gradient++, chunk);
  }
  void whole_backward(int chunk) {
    input_gradient(chunk);
    weight_gradient(chunk);
  }
  Next& next(int chunk) { return next_[static_cast<std::size_t>(chunk)]; }
  void add(PassKind kind, int microbatch, int chunk) {
    if (microbatch < shape_.microbatches) list_.push_back({kind, microbatch, chunk});
  }

  PipelineShape shape_;
  int stage_;
  std::array<Next, 2> next_;
  std::vector<Pass> list_;
};

PassList passes(PipelineShape shape) {
  PassList list;
  for (int stage = 0; stage < shape.stages; ++stage) {
    list.push_back(StageList(shape, stage).passes());
  }
  return list;
}

// The two chunks of p micro-batches; fewer if there are not enough to fill the pipeline.
int chunks_in_flight(PipelineShape shape, int stage) {
  const int m = shape.microbatches;
  return std::min({2 * shape.stages, 2 * m, m + stage + 1});
}

// The larger of two moments: chunk 0 is kept for 2p − stage micro-batches, or for one fewer, and
// chunk 1 makes up the rest of chunks_in_flight.
Bytes most_kept(PipelineShape shape, int stage, std::span<const Bytes> of_chunks) {
  const int all = chunks_in_flight(shape, stage);
  const auto with = [&](int first) {
    first = std::min(shape.microbatches, first);
    return first * of_chunks[0] + (all - first) * of_chunks[1];
  };
  const Bytes at_turn = with(2 * shape.stages - 1 - stage);
  if (shape.stages == 1) return at_turn;  // a micro-batch turns back at once
  return std::max(with(2 * shape.stages - stage), at_turn);
}

// No bubble when F = B = W.
double fill(PipelineShape /*shape*/, PassTimes /*times*/) { return 0; }

// The most are there when the pipeline drains: all chunks whose weight gradients are delayed, and
// the one at work. Those of micro-batches that the step does not have are left out.
int chunks_between_halves(PipelineShape shape, int stage) {
  if (shape.stages == 1) return 0;
  const int missing = std::max(0, 2 * shape.stages - 1 - shape.microbatches);
  const int out = std::clamp(shape.stages - missing, 0, stage);
  const int back = std::max(0, stage - missing);
  const int at_work = missing < shape.stages - stage ? 1 : 0;
  return std::max(1, out + back + at_work);
}

}  // namespace

extern const Schedule zb_v = {
    .name = "zb-v",
    .splits_backward = true,
    .needs_chunks = true,
    .route = Route::vee,
    .optimizer_barrier = false,
    .accepts = accepts,
    .passes = passes,
    .fill = fill,
    .chunks_between_halves = chunks_between_halves,
    .chunks_in_flight = chunks_in_flight,
    .most_kept = most_kept,
};

}  // namespace trainyard::kinds
