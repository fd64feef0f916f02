#include "model/cost/slack.h"

#include <algorithm>

namespace trainyard {
namespace {

StageLosses operator+(const StageLosses& a, const StageLosses& b) {
  return {a.filling + b.filling, a.draining + b.draining};
}
StageLosses operator-(const StageLosses& a, const StageLosses& b) {
  return {a.filling - b.filling, a.draining - b.draining};
}

// The way of a micro-batch through the stages behind one and back, and what that one has to do in
// the meantime.
struct WayBack {
  Seconds time;
  Seconds forward, backward;
  bool once = false;  // all forward passes come before the first backward
  // RoundTrip::exposed of a way on which the first micro-batch and the last one lose time.
  Seconds exposed(const StageLosses& lost) const {
    const Seconds first = std::max(Seconds(0), time + lost.filling - forward);
    if (once) return std::max(first, time + lost.filling + lost.draining - backward);
    return first + std::max(Seconds(0), time + lost.draining - backward);
  }
};

// How much longer the longest span is with losses: handbook §8's form for unlike stages, in which a
// stage behind another delays it by what its losses exceed the passes that the other has meanwhile.
Seconds lost_with_one_chunk(const Schedule& schedule, PipelineShape shape,
                            std::span<const PassTimes> passes,
                            std::span<const StageLosses> losses) {
  Seconds behind;
  StageLosses lost_behind;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    behind += passes[i].total();
    lost_behind = lost_behind + losses[i];
  }
  Seconds before, lost_before, longest, longest_with_losses;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const PassTimes& stage = passes[i];
    behind -= stage.total();
    lost_behind = lost_behind - losses[i];
    const int in_flight = schedule.chunks_in_flight(shape, static_cast<int>(i));
    const WayBack way{behind, (in_flight - 1) * stage.forward, (in_flight - 1) * stage.backward(),
                      shape.microbatches <= in_flight};
    const Seconds own = before + shape.microbatches * stage.total();
    lost_before += losses[i].filling + losses[i].draining;
    longest = std::max(longest, own + way.exposed({}));
    longest_with_losses =
        std::max(longest_with_losses, own + lost_before + way.exposed(lost_behind));
    before += stage.total();
  }
  return longest_with_losses - longest;
}

// How much later a micro-batch comes round through all stages where they reduce the chunk behind.
// Either the last one of a group, whose pass meets all reductions but that of its last layer; or
// the first one in the chunk before, which meets that and those that are left. On its way a stage
// goes on with those while it waits for the delays of others.
Seconds lost_in_round(PipelineShape shape, std::span<const PassTimes> passes,
                      std::span<const StageLosses> losses) {
  const double share = 1.0 / shape.chunks;
  Seconds last, first;
  for (std::size_t i = passes.size(); i-- > 0;) {
    const StageLosses& of = losses[i];
    if (of.reduced <= Seconds(0)) continue;
    const double lost = of.draining / of.reduced;  // in a second of reductions
    const Seconds pass = share * passes[i].backward();
    const Seconds reduced = share * of.reduced;
    const Seconds beside = std::min(pass, reduced * (1 - 1 / std::max(1.0, of.layers_of_chunk)));
    last += lost * beside;
    first += lost * std::clamp(reduced - beside - first, Seconds(0), pass);
  }
  return std::max(last, first);
}

// While the last micro-batches of a group go round, back to the chunk before, the slowest stage has
// the others of it: what the rest take less than it hides what they lose. In the first chunk those
// before the slowest are on the last one's way.
Seconds lost_with_chunks(PipelineShape shape, std::span<const PassTimes> passes,
                         std::span<const StageLosses> losses) {
  std::size_t slowest = 0;
  Seconds all, most;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (passes[i].total() >= passes[slowest].total()) slowest = i;
    all += passes[i].backward();
    most = std::max(most, passes[i].backward());
  }
  const double share = 1.0 / shape.chunks;
  const StageLosses& own = losses[slowest];
  Seconds lost = own.filling + share * own.draining;
  for (std::size_t i = 0; i < slowest; ++i) {
    lost += share * (losses[i].filling + losses[i].draining);
  }
  const Seconds hidden = share * (shape.stages * most - all);
  const Seconds round = lost_in_round(shape, passes, losses) - hidden;
  return lost + (shape.chunks - 1) * std::max(share * own.draining, round);
}

}  // namespace

Slack::Slack(const Plan& plan, std::vector<StageLosses>& losses)
    : schedule_(*plan.schedule),
      shape_(pipeline_shape(plan)),
      applies_(schedule_.route == Route::loop && !schedule_.splits_backward),
      chunks_(plan.virtual_stages),
      losses_(losses) {
  losses_.clear();
}

StageEnds Slack::off(StageEnds ends) const {
  ends.start = std::max(Seconds(0), ends.start - before_);
  ends.end = std::max(Seconds(0), ends.end - behind_);
  ends.queued -= behind_;
  return ends;
}

// Weights come while the stage waits for its first micro-batch.
Seconds Slack::lost_to_gathers(const StageEnds& ends) const {
  const Seconds beside = std::min(ends.gathered, ends.start + ends.gathered - before_);
  return std::max(Seconds(0), beside) * ends.lost_to_gathers;
}

void Slack::pass(const PassTimes& stage, const StageEnds& ends, int layers) {
  longest_ = std::max(longest_, stage.total());
  const Seconds filling = lost_to_gathers(ends);
  most_lost_ = std::max(most_lost_, ends.lost + filling);
  if (!applies_) return;
  losses_.push_back({filling, ends.lost, ends.reduced, layers / chunks_});
  before_ += stage.forward / chunks_;
  behind_ += stage.backward() / chunks_;
}

Seconds Slack::lost(std::span<const PassTimes> passes) const {
  if (!applies_ || most_lost_ <= Seconds(0)) return most_lost_;
  return shape_.chunks == 1 ? lost_with_one_chunk(schedule_, shape_, passes, losses_)
                            : lost_with_chunks(shape_, passes, losses_);
}

}  // namespace trainyard
