// DualPipe (DeepSeek-V3 report, 2024, §3.2.1; the order of its published implementation). Half of
// the micro-batches enter at each end of the pipeline, every stage holds a copy of the layers for
// either way, and forward passes run side by side with backward passes of the other way. Longest
// span (m−q)(F+B+W) + q·F&B + (p/2−1)(F&B + B − 2W), with q = m − 3p/2 + 1 pairs on stage 0
// (handbook §8).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

#include "model/schedule/span.h"

namespace trainyard::kinds {
namespace {

Expected<void> accepts(PipelineShape shape) {
  if (shape.stages % 2 != 0) {
    return failure("/plan/pipeline_parallel",
                   fmt::format("found {} with dualpipe, allowed even numbers; nearest {}",
                               shape.stages, shape.stages + 1));
  }
  if (auto chunks = accepts_one_chunk(shape, "dualpipe"); !chunks) return chunks;
  if (shape.microbatches % 2 != 0 || shape.microbatches < 2 * shape.stages) {
    return failure("/plan/micro_batch",
                   fmt::format("found {} micro-batches a step with dualpipe, allowed even numbers "
                               "of {} or more",
                               shape.microbatches, 2 * shape.stages));
  }
  return {};
}

// Builds one stage's list. A way is 0 (from stage 0) or 1 (from the last stage); `near` is the one
// that enters at this stage's end of the pipeline.
class StageList {
 public:
  StageList(PipelineShape shape, int stage)
      : half_(shape.microbatches / 2),
        stages_(shape.stages),
        from_end_(std::min(stage, shape.stages - 1 - stage)),
        from_middle_(shape.stages / 2 - 1 - from_end_),
        near_(stage < shape.stages / 2 ? 0 : 1),
        far_(1 - near_) {}

  std::vector<Pass> passes() {
    fill();
    steady();
    drain();
    return std::move(list_);
  }

 private:
  void fill() {
    for (int i = 0; i < 2 * from_middle_; ++i) forward(near_);
    for (int i = 0; i <= from_end_; ++i) {
      forward(near_);
      forward(far_);
    }
    for (int i = 0; i < from_middle_; ++i) {
      input_gradient(far_);
      weight_gradient();
      forward(far_);
    }
  }

  void steady() {
    for (int i = 0; i < half_ - stages_ + from_end_ + 1; ++i) {
      // On the two middle stages the first pair cannot run: each would wait for the other's pass.
      if (i == 0 && from_middle_ == 0) {
        forward(near_);
        backward(far_);
      } else {
        pair(near_, far_);
      }
      pair(far_, near_);
    }
    for (int i = 0; i < from_middle_; ++i) {
      backward(far_);
      pair(far_, near_);
    }
  }

  // In the second half of the last passes weight gradients are delayed, to fill the wait.
  void drain() {
    const int rounds = from_end_ + 1;
    bool put_off = false;
    const auto last_backward = [&](int way) { put_off ? input_gradient(way) : backward(way); };
    for (int i = 0; i < rounds; ++i) {
      if (i == rounds / 2 && from_end_ % 2 == 1) put_off = true;
      last_backward(far_);
      if (i == rounds / 2 && from_end_ % 2 == 0) put_off = true;
      last_backward(near_);
    }
    for (int i = 0; i < from_middle_; ++i) {
      weight_gradient();
      input_gradient(near_);
    }
    while (!put_off_.empty()) weight_gradient();
  }

  void forward(int way, bool paired = false) {
    list_.push_back({PassKind::forward, microbatch(way, forward_), way, paired});
  }
  void backward(int way) { list_.push_back({PassKind::backward, microbatch(way, backward_), way}); }
  void pair(int forward_way, int backward_way) {
    forward(forward_way, true);
    backward(backward_way);
  }
  void input_gradient(int way) {
    const int one = microbatch(way, backward_);
    list_.push_back({PassKind::input_gradient, one, way});
    put_off_.push_back({PassKind::weight_gradient, one, way});
  }
  void weight_gradient() {
    list_.push_back(put_off_.front());
    put_off_.pop_front();
  }
  int microbatch(int way, std::array<int, 2>& next) const {
    return way * half_ + next[static_cast<std::size_t>(way)]++;
  }

  int half_, stages_, from_end_, from_middle_;
  int near_, far_;
  std::array<int, 2> forward_{}, backward_{};  // next of each way
  std::deque<Pass> put_off_;
  std::vector<Pass> list_;
};

PassList passes(PipelineShape shape) {
  PassList list;
  for (int stage = 0; stage < shape.stages; ++stage) {
    list.push_back(StageList(shape, stage).passes());
  }
  return list;
}

int pairs(PipelineShape shape, int stage) {
  const int from_end = std::min(stage, shape.stages - 1 - stage);
  const int from_middle = shape.stages / 2 - 1 - from_end;
  const int steady = 2 * (shape.microbatches / 2 - shape.stages + from_end + 1);
  return steady + (from_middle == 0 ? -1 : from_middle);
}

// The chunks whose weight gradients `drain` delays.
int chunks_between_halves(PipelineShape shape, int stage) {
  return std::min(stage, shape.stages - 1 - stage) + 1;
}

int chunks_in_flight(PipelineShape shape, int /*stage*/) { return shape.stages + 1; }

// Of each way a stage keeps as many micro-batches as there are stages from here to the way's end.
Bytes most_kept(PipelineShape shape, int stage, std::span<const Bytes> of_chunks) {
  return (shape.stages - stage) * of_chunks[0] + (stage + 1) * of_chunks[1];
}

}  // namespace

extern const Schedule dualpipe = {
    .name = "dualpipe",
    .splits_backward = true,
    .needs_chunks = false,
    .route = Route::both_ways,
    .optimizer_barrier = true,
    .accepts = accepts,
    .passes = passes,
    .pairs = pairs,
    .chunks_between_halves = chunks_between_halves,
    .chunks_in_flight = chunks_in_flight,
    .most_kept = most_kept,
};

}  // namespace trainyard::kinds
