#include "model/schedule/rounds.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace trainyard {
namespace {

double latest(double a, double b) { return a < b ? b : a; }

// A set of turns of a round, as bits.
class MarkedTurns {
 public:
  static constexpr int kMost = 1024;

  void mark(int turn) { words_[word(turn)] |= std::uint64_t{1} << bit(turn); }
  bool has(int turn) const { return (words_[word(turn)] >> bit(turn) & 1) != 0; }
  // The first marked turn in [turn, end); `end` if there is none.
  int first_between(int turn, int end) const {
    while (turn < end) {
      const std::uint64_t bits = words_[word(turn)] >> bit(turn);
      if (bits != 0) return std::min(end, turn + std::countr_zero(bits));
      turn += 64 - bit(turn);
    }
    return end;
  }

 private:
  static std::size_t word(int turn) { return static_cast<std::size_t>(turn) / 64; }
  static int bit(int turn) { return turn & 63; }
  std::array<std::uint64_t, kMost / 64> words_{};
};

// The passes of one turn: every stage runs the same kinds, or (in a ramp) only some stages run any.
enum class Passes { some, forward, both, backward };

// Stage i runs its forward pass k + a_i, a_i = 2(p − 1 − i) + (v − 1)p, before its backward pass k.
// Count time in turns: stage i runs its backward pass k in turn k + (p − 1 − i). Then a pass waits
// only for passes of the turn before: a forward pass for the one on the stage before, a backward
// pass for the one on the stage behind, and where a micro-batch goes round from the last stage to
// the first, for the one at the other end of the pipeline.
//
// So as long as no stage reaches a chunk with another time, every turn does the same to the end
// times of the turn before. If each pass waits for the same pass as a turn ago, every end time
// grows by a constant of its own. This lasts until one of the two passes that some pass waits for,
// which was the earlier one but grows faster, overtakes the other. Such turns are skipped in one
// step.
//
// Plain numbers in seconds, because this is an inner loop of the search. `kStages` unrolls the
// loops over the stages of a short pipeline (0: any number of stages).
template <int kStages>
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
        first_(-last_ - ahead_),
        compared_at_(last_ + round_ / 4) {
    for (Times* all : {&now_.all, &now_.forward}) std::fill_n(all->begin(), stages() + 1, 0.0);
    if (round_ <= MarkedTurns::kMost) mark_unlike_turns();
  }

  Seconds run() {
    int turn = first_;
    while (turn < all_ + last_) {
      const auto [passes, end] = phase_at(turn);
      switch (passes) {
        case Passes::some:
          turn = play_until<Passes::some>(turn, end);
          break;
        case Passes::forward:
          turn = play_until<Passes::forward>(turn, end);
          break;
        case Passes::both:
          turn = play_until<Passes::both>(turn, end);
          break;
        case Passes::backward:
          turn = play_until<Passes::backward>(turn, end);
          break;
      }
    }
    return Seconds(now_.all[0] + skipped_);
  }

 private:
  using Times = std::array<double, (kStages > 0 ? kStages : kMostStagesInRounds) + 1>;
  // `all`: when the last pass of each stage ended. `forward`: when the last forward pass of the
  // stage before it ended. What a stage receives from the other end of the pipeline stands behind
  // the last stage in `all` and before the first stage in `forward`.
  struct Ends {
    Times all, forward;
  };

  // The passes of all turns up to `end`.
  struct Phase {
    Passes passes;
    int end;
  };
  Phase phase_at(int turn) const {
    const int drains = all_ - ahead_;
    if (turn < -ahead_) return {Passes::some, -ahead_};
    if (turn < 0) return {Passes::forward, 0};
    if (turn < last_) return {Passes::some, last_};
    if (turn < drains - last_) return {Passes::both, drains - last_};
    if (turn < drains) return {Passes::some, drains};
    if (turn < all_) return {Passes::backward, all_};
    return {Passes::some, all_ + last_};
  }
  // Plays or skips turns; returns the next turn: `end`, or a later one.
  template <Passes passes>
  int play_until(int turn, int end) {
    while (turn < end) {
      start_chunks(turn);
      int turns = 1;
      if constexpr (passes == Passes::some) {
        play_ramp(turn);
      } else {
        turns = alike_turns(turn, end);
        play_alike<passes>(turns);
        if (turns > 1) {
          move(at_forward_, turns - 1);
          if constexpr (passes != Passes::forward) move(at_backward_, turns - 1);
        }
      }
      turn += turns;
      if (turn - 1 == compared_at_) turn += skip_rounds(turn - 1);
    }
    return turn;
  }

  // In each turn one stage starts the next chunk of its list: the stage after (forward passes) or
  // before (backward passes) the one of the turn before. `stage` counts from the end of the
  // pipeline where passes of this kind begin.
  struct Front {
    int stage = 0, chunk = 0;
  };
  void move(Front& front) const {
    if (++front.stage < stages()) return;
    front.stage = 0;
    if (++front.chunk == chunks_) front.chunk = 0;
  }
  void move(Front& front, int turns) const {
    front.stage += turns;
    if (front.stage < stages()) return;
    front.chunk += front.stage / stages();
    front.stage %= stages();
    if (front.chunk >= chunks_) front.chunk %= chunks_;
  }
  void start_chunks(int turn) {
    const auto [stage, chunk] = at_forward_;
    forward_time_[at(stage)] = time(stage, chunk).forward.value();
    // The first chunk of the network waits for no other stage.
    if (stage == 0) goes_round_ = chunk > 0;
    move(at_forward_);
    if (turn >= 0) start_backward_chunk();
  }
  void start_backward_chunk() {
    const auto [behind, chunk] = at_backward_;
    const int stage = last_ - behind;
    backward_time_[at(stage)] = time(stage, chunks_ - 1 - chunk).backward().value();
    // The last chunk of the network only waits for its own forward pass.
    if (behind == 0) comes_round_ = chunk > 0;
    move(at_backward_);
  }

  // While the pipeline fills, the first stages have no backward pass yet; while it drains, they
  // have no forward pass any more.
  void play_ramp(int turn) {
    const std::size_t forward = at(std::clamp(turn + ahead_ + stages() - all_, 0, stages()));
    const std::size_t forward_end = at(std::min(stages(), turn + ahead_ + stages()));
    const std::size_t backward = at(turn < 0 ? stages() : std::max(0, last_ - turn));
    const std::size_t backward_end = at(std::min(stages(), all_ - turn + last_));
    begin_turn();
    const double before =
        play_forward(forward, std::min(forward_end, backward), now_.forward[forward]);
    play_backward(backward, std::min(backward_end, forward));
    play_both(std::max(forward, backward), std::min(forward_end, backward_end), before);
  }
  template <Passes passes>
  void play_all() {
    begin_turn();
    if constexpr (passes == Passes::forward) play_forward(0, at(stages()), now_.forward[0]);
    if constexpr (passes == Passes::both) play_both(0, at(stages()), now_.forward[0]);
    if constexpr (passes == Passes::backward) play_backward(0, at(stages()));
  }
  void begin_turn() {
    now_.forward[0] = goes_round_ ? now_.forward[at(stages())] : 0;
    now_.all[at(stages())] = comes_round_ ? now_.all[0] : 0;
  }
  // Stages are updated in order, so a stage finds the stage behind it as the turn before left it;
  // the old end time of the stage before it is carried along, because its place is overwritten.
  double play_forward(std::size_t first, std::size_t end, double before) {
    for (std::size_t i = first; i < end; ++i) now_.all[i] = forward_pass(i, before);
    return before;
  }
  void play_backward(std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) now_.all[i] = backward_pass(i, now_.all[i]);
  }
  void play_both(std::size_t first, std::size_t end, double before) {
    for (std::size_t i = first; i < end; ++i) {
      now_.all[i] = backward_pass(i, forward_pass(i, before));
    }
  }

  double forward_pass(std::size_t stage, double& before) {
    const double end = latest(now_.all[stage], before) + forward_time_[stage];
    before = std::exchange(now_.forward[stage + 1], end);
    return end;
  }
  double backward_pass(std::size_t stage, double now) const {
    return latest(now, now_.all[stage + 1]) + backward_time_[stage];
  }

  // The turn within its round; a round begins when stage 0 begins its first chunk.
  int in_round(int turn) const { return (turn - first_) % round_; }
  void mark_unlike_turns() {
    for (const int turn : {0, stages()}) {
      unlike_.mark(turn);            // `goes_round_`
      unlike_.mark(in_round(turn));  // `comes_round_`
    }
    for (int stage = 0; stage < stages(); ++stage) {
      int before = chunks_ - 1;
      for (int chunk = 0; chunk < chunks_; before = chunk++) {
        const PassTimes& own = time(stage, chunk);
        const PassTimes& other = time(stage, before);
        if (own.forward != other.forward) unlike_.mark(chunk * stages() + stage);
        if (own.backward() != other.backward()) {
          unlike_.mark(in_round((chunks_ - 1 - before) * stages() + last_ - stage));
        }
      }
    }
  }

  // Number of turns in [turn, end) in which every stage does the same as in turn `turn`.
  int alike_turns(int turn, int end) const {
    const int next = at_forward_.chunk * stages() + at_forward_.stage;
    if (round_ > MarkedTurns::kMost || unlike_.has(next)) return 1;
    if (turn <= compared_at_) end = std::min(end, compared_at_ + 1);
    const int most = std::min(round_, next + end - turn - 1);
    return 1 + unlike_.first_between(next, most) - next;
  }

  template <Passes passes>
  void play_alike(int turns) {
    play_all<passes>();
    int next = 2;
    for (int played = 1; played < turns; ++played) {
      const bool tried = played + 1 == next && played + 2 < turns;
      if (tried) copy_ends(turn_before_);
      play_all<passes>();
      if (!tried) continue;
      const int skipped = skip_alike<passes>(turns - played - 1);
      played += skipped;
      next = skipped > 0 ? played + 2 : played + 3;
    }
  }

  // The end time that a pass waited for in the last turn, and the one for the next turn.
  struct Awaited {
    double before, now;
    double pace() const { return now - before; }
  };
  // For how many turns, at most `most`, the end time of a pass that waits for `a` and `b` grows by
  // `pace`; 0 if it now waits for the other one of the two than in the last turn.
  int turns_at(double pace, Awaited a, Awaited b, int most) const {
    if (a.now < b.now) std::swap(a, b);
    if (a.before < b.before - rounding_ || std::abs(a.pace() - pace) > rounding_) return 0;
    const double nearer = b.pace() - a.pace();
    const double apart = a.now - b.now;
    return nearer * most <= apart + rounding_ ? most : static_cast<int>(apart / nearer);
  }
  Awaited awaited(Times Ends::*of, std::size_t stage) const {
    return {(turn_before_.*of)[stage], (now_.*of)[stage]};
  }

  // The backward pass of the stage behind, for which a backward pass waits.
  Awaited awaited_behind(std::size_t stage) const {
    if (stage + 1 < at(stages())) return awaited(&Ends::all, stage + 1);
    return comes_round_ ? awaited(&Ends::all, 0) : Awaited{};
  }

  // Skips up to `most` turns in which all end times grow as in the last one; returns how many.
  template <Passes passes>
  int skip_alike(int most) {
    rounding_ = 1e-13 * now_.all[0];
    const std::size_t end_of_all = at(stages());
    Awaited before = goes_round_ ? awaited(&Ends::forward, end_of_all) : Awaited{};
    for (std::size_t i = 0; i < end_of_all && most > 0; ++i) {
      const Awaited own = awaited(&Ends::all, i);
      Awaited forward = own;
      if constexpr (passes != Passes::backward) {
        const Awaited end = awaited(&Ends::forward, i + 1);
        most = turns_at(end.pace(), own, before, most);
        before = end;
        forward = {end.now, end.now + end.pace()};
      }
      if constexpr (passes != Passes::forward) {
        most = turns_at(own.pace(), forward, awaited_behind(i), most);
      }
    }
    for (std::size_t i = 0; i < end_of_all && most > 0; ++i) {
      now_.all[i] += most * awaited(&Ends::all, i).pace();
      now_.forward[i + 1] += most * awaited(&Ends::forward, i + 1).pace();
    }
    return most;
  }

  // Skips the rounds that repeat the last one while no stage runs out of forward passes; returns
  // how many turns these are. Most pipelines repeat themselves from a quarter of a round on.
  int skip_rounds(int turn) {
    const int left = (all_ - 1 - ahead_ - last_ - turn) / round_;
    const double later = now_.all[0] - round_before_.all[0];
    const bool repeats = left > 0 && knows_round_before_ && are_later(round_before_, later);
    copy_ends(round_before_);
    knows_round_before_ = true;
    compared_at_ = repeats ? all_ + last_ : turn + round_;
    if (!repeats) return 0;
    skipped_ = left * later;
    return left * round_;
  }
  bool are_later(const Ends& before, double later) const {
    const double rounding = 1e-12 * now_.all[0];
    for (std::size_t i = 0; i < at(stages()); ++i) {
      if (std::abs(now_.all[i] - before.all[i] - later) > rounding) return false;
      if (std::abs(now_.forward[i + 1] - before.forward[i + 1] - later) > rounding) return false;
    }
    return true;
  }
  void copy_ends(Ends& to) const {
    std::copy_n(now_.all.begin(), at(stages()), to.all.begin());
    std::copy_n(now_.forward.begin() + 1, at(stages()), to.forward.begin() + 1);
  }

  // A constant of the class if it has one.
  int stages() const {
    if constexpr (kStages > 0) return kStages;
    return stages_;
  }
  static std::size_t at(int stage) { return static_cast<std::size_t>(stage); }
  const PassTimes& time(int stage, int chunk) const { return times_[at(stage * chunks_ + chunk)]; }

  int stages_, chunks_;
  std::span<const PassTimes> times_;
  int all_;    // passes of each kind on a stage
  int round_;  // passes of each kind on a stage in one round
  int last_;   // the last stage
  int ahead_;  // a_i of the last stage
  int first_;  // the first turn
  Front at_forward_, at_backward_;
  bool goes_round_ = false, comes_round_ = false;  // from the last stage to the first, and back
  Ends now_;
  Times forward_time_, backward_time_;  // of a pass of the chunk where the stage is in its list
  MarkedTurns unlike_;  // turns in which a stage starts a chunk with another time than the last one
  Ends turn_before_, round_before_;
  double rounding_ = 0;
  int compared_at_;  // turn, with that a round before; in both every stage runs both kinds
  bool knows_round_before_ = false;
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
  switch (shape.stages) {
    case 2:
      return Turns<2>(shape, times).run();
    case 4:
      return Turns<4>(shape, times).run();
    case 8:
      return Turns<8>(shape, times).run();
    default:
      return Turns<0>(shape, times).run();
  }
}

}  // namespace trainyard
