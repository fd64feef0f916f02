#include "model/schedule/rounds.h"

#include <algorithm>
#include <array>

namespace trainyard {
namespace {

// Where a stage is in its list: rounds of p passes of each chunk.
struct Place {
  int chunk = 0, position = 0;
};

Place place_at(PipelineShape shape, int pass) {
  const int round = layer_chunks(shape);
  const int within = ((pass % round) + round) % round;
  return {within / shape.stages, within % shape.stages};
}

// Stage i runs its forward pass k + a_i, a_i = 2(p − 1 − i) + (v − 1)p, before its backward pass k.
// At the turn k + (p − 1 − i) of every stage, passes wait for passes of the turn before only: a
// forward pass for that of the stage before, a backward pass for that of the stage behind, and both
// where a micro-batch goes on from the last stage to the first for that of the other end.
class Turns {
 public:
  Turns(PipelineShape shape, std::span<const PassTimes> times)
      : shape_(shape),
        times_(times),
        all_(shape.microbatches * shape.chunks),
        ahead_((shape.chunks - 1) * shape.stages) {}

  Seconds run() {
    const int last = all_ + shape_.stages - 2;
    for (int turn = -(shape_.stages - 1) - ahead_; turn <= last; ++turn) {
      play(turn);
      if (has_gone_round(turn)) turn += skip(turn);
    }
    return at_[0].now + skipped_;
  }

 private:
  struct Stage {
    Seconds now, forward, backward;  // when the last pass ended, and that of each kind
  };
  using Stages = std::array<Stage, kMostStagesInRounds>;

  void play(int turn) {
    const int last = shape_.stages - 1;
    const Seconds forward_at_last = at(last).forward;
    Seconds behind = at(0).backward;  // of the turn before
    Place forward = place_at(shape_, turn + ahead_);
    Place backward = place_at(shape_, turn);
    for (int i = last; i >= 0; --i) {
      Stage& stage = at(i);
      const Seconds backward_before = stage.backward;
      const int f = turn + ahead_ + last - i;
      if (f >= 0 && f < all_) {
        // The first chunk of all waits for nobody.
        if (i > 0) {
          stage.now = std::max(stage.now, at(i - 1).forward);
        } else if (forward.chunk > 0) {
          stage.now = std::max(stage.now, forward_at_last);
        }
        stage.now += time(i, forward.chunk).forward;
        stage.forward = stage.now;
      }
      const int b = turn - (last - i);
      if (b >= 0 && b < all_) {
        const int chunk = shape_.chunks - 1 - backward.chunk;
        if (i < last || chunk + 1 < shape_.chunks) stage.now = std::max(stage.now, behind);
        stage.now += time(i, chunk).backward();
        stage.backward = stage.now;
      }
      behind = backward_before;
      if (++forward.position == shape_.stages) {
        forward = {forward.chunk + 1 == shape_.chunks ? 0 : forward.chunk + 1, 0};
      }
      if (--backward.position < 0) {
        backward = {backward.chunk == 0 ? shape_.chunks - 1 : backward.chunk - 1, last};
      }
    }
  }

  // Every stage has run whole rounds of both kinds.
  bool has_gone_round(int turn) const {
    const int played = turn - shape_.stages + 2;  // turns with a backward pass on every stage
    return played >= 0 && played % layer_chunks(shape_) == 0 && skipped_ == Seconds(0);
  }

  // Where every stage is as much later as in the round before, so it will be in all that follow
  // while no stage runs out of forward passes. Turns to leave out.
  int skip(int turn) {
    const int round = layer_chunks(shape_);
    const int left = (all_ - 1 - ahead_ - (shape_.stages - 1) - turn) / round;
    const Seconds later = at_[0].now - before_[0].now;
    const bool repeats = left > 0 && has_before_ && is_later_by(later);
    has_before_ = true;
    std::copy_n(at_.begin(), shape_.stages, before_.begin());
    if (!repeats) return 0;
    skipped_ = left * later;
    return left * round;
  }

  bool is_later_by(Seconds later) const {
    const Seconds rounding = 1e-12 * at_[0].now;
    const auto is_near = [&](Seconds now, Seconds before) {
      const Seconds apart = now - before - later;
      return apart <= rounding && apart >= -1.0 * rounding;
    };
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape_.stages); ++i) {
      if (!is_near(at_[i].forward, before_[i].forward)) return false;
      if (!is_near(at_[i].backward, before_[i].backward)) return false;
    }
    return true;
  }

  Stage& at(int stage) { return at_[static_cast<std::size_t>(stage)]; }
  const PassTimes& time(int stage, int chunk) const {
    return times_[static_cast<std::size_t>(stage * shape_.chunks + chunk)];
  }

  PipelineShape shape_;
  std::span<const PassTimes> times_;
  int all_;    // passes of each kind on a stage
  int ahead_;  // a_i of the last stage
  Stages at_, before_;
  bool has_before_ = false;
  Seconds skipped_;
};

}  // namespace

bool chunks_are_unlike(PipelineShape shape, std::span<const PassTimes> times) {
  constexpr double kRounding = 1e-9;
  const int chunks = shape.chunks;
  for (int stage = 0; stage < shape.stages; ++stage) {
    const int first = stage == 0 ? 1 : 0;
    const int last = stage + 1 == shape.stages ? chunks - 2 : chunks - 1;
    const auto total = [&](int chunk) {
      return times[static_cast<std::size_t>(stage * chunks + chunk)].total();
    };
    for (int chunk = first + 1; chunk <= last; ++chunk) {
      const Seconds apart = total(chunk) - total(first);
      const Seconds rounding = kRounding * total(first);
      if (apart > rounding || apart < -1.0 * rounding) return true;
    }
  }
  return false;
}

Seconds span_of_rounds(PipelineShape shape, std::span<const PassTimes> times) {
  return Turns(shape, times).run();
}

}  // namespace trainyard
