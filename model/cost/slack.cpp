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

// The way of a micro-batch from one stage through the stages behind it and back, and the passes
// that the stage itself runs in the meantime.
struct WayBack {
  Seconds time;
  Seconds forward, backward;  // the stage's own passes: while the pipeline fills, and drains
  bool once = false;          // all forward passes come before the first backward
  // How long the stage waits, if the first and the last micro-batch take longer on the way by
  // `lost` (RoundTrip::exposed has it without losses).
  Seconds exposed(const StageLosses& lost) const {
    const Seconds first = std::max(Seconds(0), time + lost.filling - forward);
    if (once) return std::max(first, time + lost.filling + lost.draining - backward);
    return first + std::max(Seconds(0), time + lost.draining - backward);
  }
};

// How much the longest span grows by losses, with one chunk a stage: handbook §8's form for unlike
// stages with and without them. A stage's losses delay the stages before it only as far as they
// exceed the passes that those have to run meanwhile.
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

// How much later a micro-batch comes round through all stages of a loop while they reduce the
// gradients of a chunk. Two micro-batches may set the pace: the last one of a group, whose own pass
// runs beside all of the chunk's reductions but the last; or the first one in the chunk before,
// which meets what is left. A stage goes on reducing while it waits for the delays of others, so
// these are taken off what is left.
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
    const Seconds beside = std::min(pass, reduced * (1 - 1 / std::max(1.0, of.messages_of_chunk)));
    last += lost * beside;
    first += lost * std::clamp(reduced - beside - first, Seconds(0), pass);
  }
  return std::max(last, first);
}

// How much the step grows by losses, with several chunks a stage. While the last micro-batches of a
// group go round, back to the chunk before, the slowest stage runs passes of the others, and the
// other stages wait for it; their losses are hidden in that time. In the network's first chunk the
// stages before the slowest one are on the last micro-batch's way, so their losses count in full.
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

// Gathers while the stage waits for its first micro-batch cost it nothing; only those beside its
// passes do.
Seconds Slack::lost_to_gathers(const StageEnds& ends) const {
  const Seconds beside = std::min(ends.gathered, ends.start + ends.gathered - before_);
  return std::max(Seconds(0), beside) * ends.lost_to_gathers;
}

void Slack::pass(const PassTimes& stage, const StageEnds& ends, int messages) {
  longest_ = std::max(longest_, stage.total());
  const Seconds filling = lost_to_gathers(ends);
  most_lost_ = std::max(most_lost_, ends.lost + filling);
  if (!applies_) return;
  losses_.push_back({filling, ends.lost, ends.reduced, messages / chunks_});
  before_ += stage.forward / chunks_;
  behind_ += (stage.backward() + ends.lost) / chunks_;
}

Seconds Slack::lost(std::span<const PassTimes> passes) const {
  if (!applies_ || most_lost_ <= Seconds(0)) return most_lost_;
  return shape_.chunks == 1 ? lost_with_one_chunk(schedule_, shape_, passes, losses_)
                            : lost_with_chunks(shape_, passes, losses_);
}

}  // namespace trainyard
