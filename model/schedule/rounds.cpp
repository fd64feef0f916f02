#include "model/schedule/rounds.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace trainyard {
namespace {

// Stage i runs its forward pass k + a_i, a_i = 2(p − 1 − i) + (v − 1)p, before its backward pass k.
// At the turn k + (p − 1 − i) of every stage, passes wait for passes of the turn before only: a
// forward pass for that of the stage before, a backward pass for that of the stage behind, and both
// where a micro-batch goes on from the last stage to the first for that of the other end.
//
// Plain numbers in seconds, for this is an inner loop of the search.
class Turns {
 public:
  Turns(PipelineShape shape, std::span<const PassTimes> times)
      : stages_(shape.stages),
        chunks_(shape.chunks),
        times_(times),
        all_(shape.microbatches * shape.chunks),
        round_(layer_chunks(shape)),
        last_(shape.stages - 1),
        ahead_((shape.chunks - 1) * shape.stages) {
    for (Times* all : {&now_, &forward_, &backward_}) std::fill_n(all->begin(), at(last_) + 2, 0.0);
  }

  Seconds run() {
    for (int turn = -last_ - ahead_; turn < all_ + last_; ++turn) {
      const double to_first = forward_[at(last_)];
      const double to_last = backward_[at(0)];
      play_forward(turn + ahead_, to_first);
      play_backward(turn, to_last);
      if (is_compared(turn)) turn += skip(turn);
    }
    return Seconds(now_[at(0)] + skipped_);
  }

 private:
  // With a place for what comes to the first stage and to the last.
  using Times = std::array<double, kMostStagesInRounds + 2>;
  // Of the passes of a kind in a round: p of each chunk.
  struct Place {
    int chunk, position;
  };
  Place place_of(int pass) const {
    const int within = pass % round_;
    return {within / stages_, within % stages_};
  }
  const PassTimes* time_of(int stage, int chunk) const {
    return &times_[static_cast<std::size_t>(stage * chunks_ + chunk)];
  }

  // Pass `at_last` of the last stage, and of every stage before one more: at most two runs of
  // stages with the same chunk. Needs what the stage before had, and the first stage what the last
  // one had.
  void play_forward(int at_last, double to_first) {
    int stage = std::min(last_, last_ + at_last);
    const int end = std::max(0, at_last + last_ - all_ + 1);
    if (stage < end) return;
    Place place = place_of(at_last + last_ - stage);
    // The first chunk of all waits for nobody.
    forward_[0] = at_last + last_ >= stages_ && place_of(at_last + last_).chunk > 0 ? to_first : 0;
    while (stage >= end) {
      const int stop = std::max(end, stage - (stages_ - place.position) + 1);
      const PassTimes* time = time_of(stage, place.chunk);
      for (; stage >= stop; --stage, time -= chunks_) {
        const std::size_t here = at(stage);
        const double ready = forward_[here - 1] > now_[here] ? forward_[here - 1] : now_[here];
        forward_[here] = now_[here] = ready + time->forward.value();
      }
      place = {place.chunk + 1 == chunks_ ? 0 : place.chunk + 1, 0};
    }
  }

  // Pass `at_last` of the last stage, and of every stage before one less.
  void play_backward(int at_last, double to_last) {
    int stage = std::max(0, last_ - at_last);
    const int end = std::min(last_, last_ - at_last + all_ - 1);
    if (stage > end) return;
    Place place = place_of(at_last - last_ + stage);
    // The last chunk of all follows its own forward pass.
    backward_[at(last_) + 1] = at_last % round_ < stages_ ? 0 : to_last;
    while (stage <= end) {
      const int stop = std::min(end, stage + (stages_ - place.position) - 1);
      const PassTimes* time = time_of(stage, chunks_ - 1 - place.chunk);
      for (; stage <= stop; ++stage, time += chunks_) {
        const std::size_t here = at(stage);
        const double ready = backward_[here + 1] > now_[here] ? backward_[here + 1] : now_[here];
        backward_[here] = now_[here] = ready + time->backward().value();
      }
      place = {place.chunk + 1 == chunks_ ? 0 : place.chunk + 1, 0};
    }
  }

  // Turns a round apart in which every stage runs both kinds. Most pipelines repeat themselves from
  // a quarter of a round on.
  bool is_compared(int turn) const {
    const int since = turn - last_ - round_ / 4;
    return since >= 0 && since % round_ == 0 && skipped_ == 0;
  }

  // Where every stage is as much later as a round before, so it will be in all rounds that follow
  // while no stage runs out of forward passes. Turns to leave out.
  int skip(int turn) {
    const int left = (all_ - 1 - ahead_ - last_ - turn) / round_;
    const double later = forward_[at(0)] - forward_before_[at(0)];
    const bool repeats = left > 0 && has_before_ && is_later(forward_, forward_before_, later) &&
                         is_later(backward_, backward_before_, later);
    has_before_ = true;
    const auto used = at(last_) + 1;
    std::copy_n(forward_.begin(), used, forward_before_.begin());
    std::copy_n(backward_.begin(), used, backward_before_.begin());
    if (!repeats) return 0;
    skipped_ = left * later;
    return left * round_;
  }

  bool is_later(const Times& now, const Times& before, double later) const {
    const double rounding = 1e-12 * now_[at(0)];
    for (std::size_t i = at(0); i <= at(last_); ++i) {
      if (std::abs(now[i] - before[i] - later) > rounding) return false;
    }
    return true;
  }

  static std::size_t at(int stage) { return static_cast<std::size_t>(stage) + 1; }

  int stages_, chunks_;
  std::span<const PassTimes> times_;
  int all_;    // passes of each kind on a stage
  int round_;  // of them
  int last_;   // stage
  int ahead_;  // a_i of it
  // When the last pass of a stage ended, and the last of each kind.
  Times now_, forward_, backward_;
  Times forward_before_, backward_before_;  // a round ago
  bool has_before_ = false;
  double skipped_ = 0;
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
