#include "model/schedule/zero_bubble.h"

#include <algorithm>

#include "model/schedule/play.h"
#include "model/schedule/span.h"

namespace trainyard {

namespace {

PassList without_pipeline(int microbatches) {
  PassList list(1);
  for (int i = 0; i < microbatches; ++i) {
    list[0].push_back({PassKind::forward, i, 0});
    list[0].push_back({PassKind::backward, i, 0});
  }
  return list;
}

}  // namespace

PassList zero_bubble_passes(PipelineShape shape, ZeroBubbleStages stages) {
  const int m = shape.microbatches;
  if (shape.stages == 1) return without_pipeline(m);
  PassList list(static_cast<std::size_t>(shape.stages));
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::vector<Pass>& mine = list[static_cast<std::size_t>(stage)];
    const auto [ahead, delay] = stages(shape, stage);
    for (int i = 0; i < std::min(ahead, m); ++i) mine.push_back({PassKind::forward, i, 0});
    for (int i = 0; i < m; ++i) {
      mine.push_back({PassKind::input_gradient, i, 0});
      if (i >= delay) mine.push_back({PassKind::weight_gradient, i - delay, 0});
      if (i + ahead < m) mine.push_back({PassKind::forward, i + ahead, 0});
    }
    for (int i = std::max(0, m - delay); i < m; ++i) {
      mine.push_back({PassKind::weight_gradient, i, 0});
    }
  }
  return list;
}

namespace {

bool are_alike(std::span<const PassTimes> times) {
  return std::ranges::all_of(times, [&](const PassTimes& stage) {
    return stage.forward == times.front().forward &&
           stage.input_gradient == times.front().input_gradient &&
           stage.weight_gradient == times.front().weight_gradient;
  });
}

}  // namespace

ZeroBubbleTimes zero_bubble_times(PipelineShape shape, std::span<const PassTimes> times,
                                  ZeroBubbleStages stages) {
  const int m = shape.microbatches;
  // Outside handbook §8's domains: a stage behind may wait in the middle of its list.
  if (m < stages(shape, 0).ahead && !are_alike(times)) {
    const Played played =
        play(zero_bubble_passes(shape, stages), shape, play_times(shape, times)).value();
    return {played.longest_span, played.makespan};
  }
  Seconds start;  // of the stage, after the first forward passes of the stages before it
  for (const PassTimes& stage : times) start += stage.forward;
  Seconds round_trip;     // Σ F_i + B_i of the stages behind the current one
  Seconds last_gradient;  // when the last input gradient of the stage ends
  ZeroBubbleTimes result;
  for (int stage = shape.stages - 1; stage >= 0; --stage) {
    const PassTimes& t = times[static_cast<std::size_t>(stage)];
    const auto [ahead, delay] = stages(shape, stage);
    const int hidden = std::min(ahead, m) - 1;  // micro-batches on their way while it waits
    const int left = std::min(delay, m - 1) + 1;
    const int filled = std::max(0, m - 1 - delay) - std::max(0, m - 1 - delay - hidden);
    const RoundTrip trip = {
        .time = round_trip,
        .hidden_filling = hidden * t.forward,
        .hidden_draining = hidden * t.input_gradient + filled * t.weight_gradient,
        .once = m <= ahead};
    start -= t.forward;
    const Seconds unstarved = start + trip.exposed() + m * t.total() - left * t.weight_gradient;
    last_gradient = std::max(last_gradient + t.input_gradient, unstarved);
    const Seconds end = last_gradient + left * t.weight_gradient;
    result.longest_span = std::max(result.longest_span, end - start);
    result.makespan = std::max(result.makespan, end);
    round_trip += t.forward + t.input_gradient;
  }
  return result;
}

int zero_bubble_at_end(PipelineShape shape, ZeroBubbleStage stage) {
  return std::min(stage.delay, shape.microbatches - 1) + 1;
}

int zero_bubble_between_halves(PipelineShape shape, ZeroBubbleStage stage) {
  return shape.stages == 1 ? 0 : zero_bubble_at_end(shape, stage);
}

int zero_bubble_in_flight(PipelineShape shape, ZeroBubbleStage stage) {
  return std::min(shape.microbatches, stage.ahead + stage.delay);
}

int zero_bubble_past_input_gradient(PipelineShape shape, ZeroBubbleStage stage) {
  return zero_bubble_in_flight(shape, stage) - std::min(stage.ahead, shape.microbatches);
}

double zero_bubble_fill(PassTimes times, ZeroBubbleStages stages) {
  const int more = stages({.stages = 2}, 1).delay;
  const Seconds forth_and_back = times.forward + times.input_gradient;
  const double shown =
      (forth_and_back - more * times.weight_gradient) / (forth_and_back + times.weight_gradient);
  return std::clamp(shown, 0.0, 1.0);
}

}  // namespace trainyard
