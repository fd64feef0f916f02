#include "model/schedule/play.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "model/schedule/ticks.h"

namespace trainyard {
namespace {

constexpr Ticks kNotYet = -1;

std::string_view name_of(PassKind kind) {
  switch (kind) {
    case PassKind::forward:
      return "forward";
    case PassKind::backward:
      return "backward";
    case PassKind::input_gradient:
      return "input gradient";
    case PassKind::weight_gradient:
      return "weight gradient";
  }
  return "";
}

Error wrong(int stage, const Pass& pass, std::string_view what) {
  return {"pass list", fmt::format("stage {}: {} of micro-batch {}, chunk {} {}", stage,
                                   name_of(pass.kind), pass.microbatch, pass.chunk, what)};
}

// What is known of one micro-batch in one chunk: when its passes ended.
struct Progress {
  Ticks forward_end = kNotYet;
  Ticks input_gradient_end = kNotYet;
};

struct PassTicks {
  Ticks forward, input_gradient, weight_gradient, hidden;
};

struct StageClock {
  std::size_t next = 0;  // position in its pass list
  Ticks start = 0, end = 0;
  int in_flight = 0, most_in_flight = 0;
};

class Player {
 public:
  Player(const PassList& passes, PipelineShape shape, const PlayTimes& times)
      : passes_(passes),
        shape_(shape),
        clock_(longest_play(shape, times)),
        send_(clock_.ticks(times.send)) {
    clocks_.resize(static_cast<std::size_t>(shape.stages));
    progress_.resize(static_cast<std::size_t>(chunks()) *
                     static_cast<std::size_t>(shape.microbatches));
    for (const std::vector<PassTimes>& stage : times.stage_chunk) {
      for (const PassTimes& t : stage) {
        durations_.push_back({clock_.ticks(t.forward), clock_.ticks(t.input_gradient),
                              clock_.ticks(t.weight_gradient), clock_.ticks(t.hidden)});
      }
    }
  }

  Expected<Played> run() {
    if (auto error = check_lists()) return tl::unexpected(*error);
    for (int stage = 0; stage < shape_.stages; ++stage) woken_.push_back(stage);
    while (!woken_.empty()) {
      const int stage = woken_.back();
      woken_.pop_back();
      advance(stage);
    }
    if (auto error = check_finished()) return tl::unexpected(*error);
    return result();
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  int chunks() const { return layer_chunks(shape_); }
  int stage_of(int microbatch, int chunk) const {
    return place_of(shape_, microbatch, chunk).stage;
  }
  int chunk_of(int stage, const Pass& pass) const {
    return layer_chunk_of(shape_, {stage, pass.chunk});
  }

  Progress& progress(int chunk, int microbatch) {
    return progress_[index(microbatch) * index(chunks()) + index(chunk)];
  }

  // Checks that no pass is out of range or repeated and that none is missing.
  std::optional<Error> check_lists() {
    std::vector<std::uint8_t> seen(progress_.size());  // a bit for each kind
    if (passes_.size() != index(shape_.stages)) {
      return Error{"pass list",
                   fmt::format("found {} stages, allowed {}", passes_.size(), shape_.stages)};
    }
    for (int stage = 0; stage < shape_.stages; ++stage) {
      const std::vector<Pass>& list = passes_[index(stage)];
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Pass& pass = list[i];
        if (!in_range(pass)) return wrong(stage, pass, "is out of range");
        if (pass.paired && !is_pair(list, i))
          return wrong(stage, pass, "is paired with no backward");
        std::uint8_t& kinds =
            seen[index(pass.microbatch) * index(chunks()) + index(chunk_of(stage, pass))];
        if ((kinds & covered_by(pass.kind)) != 0) return wrong(stage, pass, "is repeated");
        kinds = static_cast<std::uint8_t>(kinds | covered_by(pass.kind));
      }
    }
    return missing_pass(seen);
  }

  bool in_range(const Pass& pass) const {
    return pass.microbatch >= 0 && pass.microbatch < shape_.microbatches && pass.chunk >= 0 &&
           pass.chunk < chunks_held(shape_) &&
           (shape_.route != Route::both_ways ||
            is_return(shape_, pass.microbatch) == (pass.chunk == 1));
  }

  static bool is_pair(const std::vector<Pass>& list, std::size_t position) {
    return list[position].kind == PassKind::forward && position + 1 < list.size() &&
           list[position + 1].kind == PassKind::backward;
  }

  // Bits for F, B and W; a backward pass is both B and W.
  static unsigned covered_by(PassKind kind) {
    switch (kind) {
      case PassKind::forward:
        return 1;
      case PassKind::input_gradient:
        return 2;
      case PassKind::weight_gradient:
        return 4;
      case PassKind::backward:
        return 2 | 4;
    }
    return 0;
  }

  std::optional<Error> missing_pass(const std::vector<std::uint8_t>& seen) const {
    const auto found =
        std::find_if(seen.begin(), seen.end(), [](std::uint8_t k) { return k != 7; });
    if (found == seen.end()) return std::nullopt;
    const int position = static_cast<int>(found - seen.begin());
    const int microbatch = position / chunks();
    const ChunkPlace place = place_of(shape_, microbatch, position % chunks());
    Pass pass{.microbatch = microbatch, .chunk = place.chunk};
    for (const PassKind kind : {PassKind::weight_gradient, PassKind::input_gradient,
                                PassKind::backward, PassKind::forward}) {
      if ((*found & covered_by(kind)) == 0) pass.kind = kind;
    }
    return wrong(place.stage, pass, "is missing");
  }

  // Runs the stage's passes until one has to wait.
  void advance(int stage) {
    const std::vector<Pass>& list = passes_[index(stage)];
    StageClock& clock = clocks_[index(stage)];
    while (clock.next < list.size()) {
      const Pass& pass = list[clock.next];
      const Ticks ready = ready_at(stage, pass);
      if (ready == kNotYet) return;
      const Ticks start = std::max(ready, clock.end);
      if (pass.paired) {
        const Pass& beside = list[clock.next + 1];
        const Ticks beside_ready = ready_at(stage, beside);
        if (beside_ready == kNotYet) return;
        run_pair(stage, pass, beside, std::max(start, beside_ready));
      } else {
        run_pass(stage, pass, start, start + duration_of(stage, pass));
      }
    }
  }

  // When the inputs of a pass are there; kNotYet: a pass that it needs has not run.
  Ticks ready_at(int stage, const Pass& pass) {
    const int chunk = chunk_of(stage, pass);
    const Progress& own = progress(chunk, pass.microbatch);
    switch (pass.kind) {
      case PassKind::forward:
        if (chunk == 0) return 0;
        return arrival(progress(chunk - 1, pass.microbatch).forward_end,
                       stage != stage_of(pass.microbatch, chunk - 1));
      case PassKind::backward:
      case PassKind::input_gradient:
        if (own.forward_end == kNotYet || chunk == chunks() - 1) return own.forward_end;
        return arrival(progress(chunk + 1, pass.microbatch).input_gradient_end,
                       stage != stage_of(pass.microbatch, chunk + 1));
      case PassKind::weight_gradient:
        return own.input_gradient_end;
    }
    return kNotYet;
  }

  Ticks arrival(Ticks ended, bool sent) const {
    return ended == kNotYet || !sent ? ended : ended + send_;
  }

  const PassTicks& times_of(int stage, const Pass& pass) const {
    return durations_[index(stage) * index(chunks_held(shape_)) + index(pass.chunk)];
  }

  Ticks duration_of(int stage, const Pass& pass) const {
    const PassTicks& times = times_of(stage, pass);
    switch (pass.kind) {
      case PassKind::forward:
        return times.forward;
      case PassKind::backward:
        return times.input_gradient + times.weight_gradient;
      case PassKind::input_gradient:
        return times.input_gradient;
      case PassKind::weight_gradient:
        return times.weight_gradient;
    }
    return 0;
  }

  void run_pair(int stage, const Pass& forward, const Pass& backward, Ticks start) {
    const Ticks end = start + duration_of(stage, forward) + duration_of(stage, backward) -
                      times_of(stage, forward).hidden;
    run_pass(stage, forward, start, end);
    run_pass(stage, backward, start, end);
  }

  void run_pass(int stage, const Pass& pass, Ticks start, Ticks end) {
    StageClock& clock = clocks_[index(stage)];
    if (clock.next++ == 0) clock.start = start;
    clock.end = end;
    const int chunk = chunk_of(stage, pass);
    Progress& own = progress(chunk, pass.microbatch);
    switch (pass.kind) {
      case PassKind::forward:
        own.forward_end = end;
        clock.most_in_flight = std::max(clock.most_in_flight, ++clock.in_flight);
        wake(chunk + 1, pass);
        break;
      case PassKind::backward:
        own.input_gradient_end = end;
        --clock.in_flight;
        wake(chunk - 1, pass);
        break;
      case PassKind::input_gradient:
        own.input_gradient_end = end;
        wake(chunk - 1, pass);
        break;
      case PassKind::weight_gradient:
        --clock.in_flight;
        break;
    }
  }

  // Wakes the stage of `chunk` if its next pass waits for the pass that ended.
  void wake(int chunk, const Pass& ended) {
    if (chunk < 0 || chunk >= chunks()) return;
    const int stage = stage_of(ended.microbatch, chunk);
    const StageClock& clock = clocks_[index(stage)];
    const std::vector<Pass>& list = passes_[index(stage)];
    if (clock.next >= list.size()) return;
    const auto waits_for_it = [&](const Pass& next) {
      return next.microbatch == ended.microbatch && chunk_of(stage, next) == chunk;
    };
    const Pass& next = list[clock.next];
    if (waits_for_it(next) || (next.paired && waits_for_it(list[clock.next + 1]))) {
      woken_.push_back(stage);
    }
  }

  std::optional<Error> check_finished() const {
    for (int stage = 0; stage < shape_.stages; ++stage) {
      const std::vector<Pass>& list = passes_[index(stage)];
      const std::size_t next = clocks_[index(stage)].next;
      if (next < list.size()) return wrong(stage, list[next], "waits for ever: a deadlock");
    }
    return std::nullopt;
  }

  Played result() const {
    Played played;
    for (const StageClock& clock : clocks_) {
      played.start.push_back(clock_.seconds(clock.start));
      played.end.push_back(clock_.seconds(clock.end));
      played.makespan = std::max(played.makespan, clock_.seconds(clock.end));
      played.longest_span = std::max(played.longest_span, clock_.seconds(clock.end - clock.start));
      played.chunks_in_flight.push_back(clock.most_in_flight);
    }
    return played;
  }

  const PassList& passes_;
  PipelineShape shape_;
  TickClock clock_;
  Ticks send_;
  std::vector<PassTicks> durations_;  // [stage][local chunk]
  std::vector<Progress> progress_;    // [micro-batch][chunk]
  std::vector<StageClock> clocks_;
  std::vector<int> woken_;
};

}  // namespace

Seconds longest_play(PipelineShape shape, const PlayTimes& times) {
  Seconds each;
  for (const std::vector<PassTimes>& stage : times.stage_chunk) {
    for (const PassTimes& t : stage) each += t.total() + 2 * times.send;
  }
  return shape.microbatches * each;
}

Expected<Played> play(const PassList& passes, PipelineShape shape, const PlayTimes& times) {
  return Player(passes, shape, times).run();
}

PlayTimes play_times(PipelineShape shape, std::span<const PassTimes> stages) {
  const auto held = static_cast<std::size_t>(chunks_held(shape));
  const double share = 1.0 / shape.chunks;
  PlayTimes times;
  if (held > 1 && stages.size() > static_cast<std::size_t>(shape.stages)) {
    for (; !stages.empty(); stages = stages.subspan(held)) {
      times.stage_chunk.emplace_back(stages.begin(),
                                     stages.begin() + static_cast<std::ptrdiff_t>(held));
    }
    return times;
  }
  for (const PassTimes& stage : stages) {
    const PassTimes chunk = {.forward = stage.forward * share,
                             .input_gradient = stage.input_gradient * share,
                             .weight_gradient = stage.weight_gradient * share,
                             .hidden = stage.hidden * share};
    times.stage_chunk.emplace_back(held, chunk);
  }
  return times;
}

PlayTimes uniform_times(PipelineShape shape, PassTimes stage) {
  return play_times(shape, std::vector(static_cast<std::size_t>(shape.stages), stage));
}

}  // namespace trainyard
