#include "model/schedule/rounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace trainyard {
namespace {

double latest(double a, double b) { return a < b ? b : a; }

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
        ahead_((shape.chunks - 1) * shape.stages),
        at_backward_{shape.stages - 1, 0} {
    for (Times* all : {&now_, &forward_}) std::fill_n(all->begin(), stages_ + 1, 0.0);
  }

  Seconds run() {
    for (int turn = -last_ - ahead_; turn < all_ + last_; ++turn) {
      play(turn);
      if (is_compared(turn)) turn += skip(turn);
    }
    return Seconds(now_[0] + skipped_);
  }

 private:
  using Times = std::array<double, kMostStagesInRounds + 1>;

  // Each turn one stage comes to the next chunk of its list: behind (forward) or before (backward)
  // that of the turn before.
  struct Front {
    int stage = 0, chunk = 0;
  };
  void start_forward_chunk() {
    auto& [stage, chunk] = at_forward_;
    forward_time_[at(stage)] = time(stage, chunk).forward.value();
    // The first chunk of all waits for nobody.
    if (stage == 0) goes_round_ = chunk > 0;
    if (++stage < stages_) return;
    stage = 0;
    chunk = chunk + 1 == chunks_ ? 0 : chunk + 1;
  }
  void start_backward_chunk() {
    auto& [stage, chunk] = at_backward_;
    backward_time_[at(stage)] = time(stage, chunks_ - 1 - chunk).backward().value();
    // The last chunk of all follows its own forward pass.
    if (stage == last_) comes_round_ = chunk > 0;
    if (--stage >= 0) return;
    stage = last_;
    chunk = chunk + 1 == chunks_ ? 0 : chunk + 1;
  }

  // Stages one after the other find what those behind them did in the turn before. While the
  // pipeline fills the first of them have no backward pass yet, while it drains no forward pass.
  void play(int turn) {
    start_forward_chunk();
    if (turn >= 0) start_backward_chunk();
    const int forward = std::max(0, turn + ahead_ + stages_ - all_);
    const int forward_end = std::min(stages_, turn + ahead_ + stages_);
    const int backward = turn < 0 ? stages_ : std::max(0, last_ - turn);
    const int backward_end = std::min(stages_, all_ - turn + last_);
    before_ = forward > 0 ? forward_[at(forward - 1)] : goes_round_ ? forward_[at(last_)] : 0;
    now_[at(stages_)] = comes_round_ ? now_[0] : 0;
    play_forward(at(forward), at(std::min(forward_end, backward)));
    play_backward(at(backward), at(std::min(backward_end, forward)));
    play_both(at(std::max(forward, backward)), at(std::min(forward_end, backward_end)));
  }
  void play_forward(std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) now_[i] = forward_pass(i);
  }
  void play_backward(std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) now_[i] = backward_pass(i, now_[i]);
  }
  void play_both(std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) now_[i] = backward_pass(i, forward_pass(i));
  }

  double forward_pass(std::size_t stage) {
    const double end = latest(now_[stage], before_) + forward_time_[stage];
    before_ = std::exchange(forward_[stage], end);
    return end;
  }
  double backward_pass(std::size_t stage, double now) const {
    return latest(now, now_[stage + 1]) + backward_time_[stage];
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
    const double later = has_before_ ? now_[0] - now_before_[0] : 0;
    const bool repeats = left > 0 && has_before_ && is_later(forward_, forward_before_, later) &&
                         is_later(now_, now_before_, later);
    has_before_ = true;
    std::copy_n(forward_.begin(), stages_, forward_before_.begin());
    std::copy_n(now_.begin(), stages_, now_before_.begin());
    if (!repeats) return 0;
    skipped_ = left * later;
    return left * round_;
  }

  bool is_later(const Times& now, const Times& before, double later) const {
    const double rounding = 1e-12 * now_[0];
    for (std::size_t i = 0; i < at(stages_); ++i) {
      if (std::abs(now[i] - before[i] - later) > rounding) return false;
    }
    return true;
  }

  static std::size_t at(int stage) { return static_cast<std::size_t>(stage); }
  const PassTimes& time(int stage, int chunk) const { return times_[at(stage * chunks_ + chunk)]; }

  int stages_, chunks_;
  std::span<const PassTimes> times_;
  int all_;    // passes of each kind on a stage
  int round_;  // of them
  int last_;   // stage
  int ahead_;  // a_i of it
  Front at_forward_, at_backward_;
  bool goes_round_ = false, comes_round_ = false;  // from the last stage to the first, and back
  // When the last pass of a stage ended, and the last forward pass; what a pass of the chunk takes
  // where the stage is in its list.
  Times now_, forward_, forward_time_, backward_time_;
  double before_ = 0;                  // the forward pass of the stage before, a turn ago
  Times now_before_, forward_before_;  // a round ago
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
