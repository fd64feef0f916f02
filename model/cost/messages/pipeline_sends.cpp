#include "model/cost/messages/pipeline_sends.h"

#include <algorithm>

namespace trainyard {
namespace {

using enum CollectiveOperation;

// Sets the sends between domains, over `group`, whose places are one domain each.
void set_between(const Plan& plan, const GroupLinks& group, Bytes message, const PlanLinks& links,
                 PipelineSends& sends) {
  const CollectiveCost cost = collective_cost(send, group, message, links.choice);
  sends.between = cost.time;
  if (group.hops == nullptr) return;
  const PipelineShape shape = pipeline_shape(plan);
  sends.loops = shape.route == Route::loop && shape.chunks > 1;
  sends.hops = sends.loops ? group.hops->around : group.hops->along;
  sends.latency = cost.latency;
  sends.bytes = cost.time - cost.latency;
  sends.between = sends.latency + *std::ranges::max_element(sends.hops) * sends.bytes;
}

}  // namespace

PipelineSends pipeline_sends(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  if (links.pipeline.size == 1) return {.first_stage = links.first_stage};
  const Bytes message = hidden_message(job, plan);
  const bool scattered = job.job.training.stack.scattered_sends && !plan.sequence_parallel;
  const double share = plan.sequence_parallel || scattered ? plan.tensor_parallel : 1;
  const Seconds gathered =
      scattered ? collective_time(all_gather, links.tensor, message, links) : Seconds(0);
  PipelineSends sends{.first_stage = links.first_stage, .stages = links.pipeline.size};
  GroupLinks inside = links.pipeline;
  if (inside.domains == 1 || inside.ranks_per_domain == 1) {
    set_between(plan, inside, message / share, links, sends);
  } else {
    GroupLinks between = links.pipeline;
    between.size = between.domains;
    between.ranks_per_domain = 1;
    set_between(plan, between, message / share, links, sends);
    sends.stages_in_domain = inside.ranks_per_domain;
    inside.size = inside.ranks_per_domain;
    inside.domains = 1;
    sends.within = collective_time(send, inside, message / share, links) + gathered;
  }
  sends.between += gathered;
  sends.latency += gathered;
  return sends;
}

Seconds PipelineSends::behind(int stage) const {
  const int place = stage - first_stage;
  if ((place + 1) % stages_in_domain != 0) return within;
  if (hops.empty()) return between;
  const std::size_t domain =
      place < 0 ? hops.size() - 1 : static_cast<std::size_t>((place + 1) / stages_in_domain - 1);
  return latency + hops[domain] * bytes;
}

Seconds PipelineSends::on_the_way() const {
  const int crossings = (stages - 1) / stages_in_domain;
  Seconds all = (stages - 1 - crossings) * within;
  if (hops.empty()) return all + crossings * between;
  for (int domain = 1; domain <= crossings; ++domain) {
    all += behind(first_stage + domain * stages_in_domain - 1);
  }
  return all;
}

PipelineSends operator*(double times, PipelineSends sends) {
  sends.within = times * sends.within;
  sends.between = times * sends.between;
  sends.latency = times * sends.latency;
  sends.bytes = times * sends.bytes;
  return sends;
}

namespace {

// Time of a micro-batch's messages over both boundaries of a stage, in one direction. The network's
// first chunk receives no activations, its last one sends none; in a V the first stage holds both,
// and the chunks of the last stage pass activations on inside the stage.
Seconds over_boundaries(const Plan& plan, const PipelineSends& sends, int stage) {
  const bool turns = plan.schedule->route == Route::vee;
  const int at_end = plan.virtual_stages - (turns ? 2 : 1);
  return (stage == 0 ? at_end : plan.virtual_stages) * sends.behind(stage - 1) +
         (stage == plan.pipeline_parallel - 1 ? at_end : plan.virtual_stages) * sends.behind(stage);
}

// Messages of one micro-batch that this stage sends, forward and back. The last chunk sends no
// activations, the first no gradients. But on a loop with whole backward passes they are counted as
// if they did: otherwise BigScience's published runs, held out, are 15.5 % off instead of 13.5.
struct Sent {
  double forward, back;
};
Sent sent(const Plan& plan, int stage) {
  const bool first = stage == 0;
  const bool last = stage == plan.pipeline_parallel - 1;
  const double visits = plan.virtual_stages;
  if (plan.schedule->route == Route::loop) {
    if (!plan.schedule->splits_backward) return {visits, visits};
    return {visits - (last ? 1 : 0), visits - (first ? 1 : 0)};
  }
  const double ends = (first ? 1 : 0) + (last ? 1 : 0);
  const double both = visits - (plan.schedule->route == Route::vee ? 1.0 : 0.5) * ends;
  return {both, both};
}

// Time of a message at a boundary if it is not overlapped: of the slowest boundary, but on a routed
// fabric of its own one, or where that lies inside a domain, of the nearest two domains.
Seconds shown_behind(const PipelineSends& sends, int stage) {
  const bool inside = (stage - sends.first_stage + 1) % sends.stages_in_domain != 0;
  if (sends.hops.empty()) return sends.between;
  if (!inside) return sends.behind(stage);
  return sends.latency + *std::ranges::min_element(sends.hops) * sends.bytes;
}

// The mean of a stage's boundaries, of which the ends of a row have one.
Seconds shown_at(const PipelineSends& sends, int stage) {
  const int place = stage - sends.first_stage;
  const bool at_start = place == 0 && !sends.loops;
  const bool at_end = place == sends.stages - 1 && !sends.loops;
  const Seconds before = shown_behind(sends, at_start ? stage : stage - 1);
  return 0.5 * (before + shown_behind(sends, at_end ? stage - 1 : stage));
}

}  // namespace

PassTimes sends_in_passes(const Stack& stack, const Plan& plan, const PipelineSends& sends,
                          int stage) {
  if (plan.pipeline_parallel == 1) return {};
  if (!plan.overlap.pipeline) {
    const auto [forward, back] = sent(plan, stage);
    const Seconds each = shown_at(sends, stage);
    return {.forward = forward * each, .input_gradient = back * each};
  }
  const Seconds shown = over_boundaries(plan, sends, stage) * stack.overlap_slowdown;
  return {.forward = shown, .input_gradient = shown};
}

namespace {

// Passes of one chunk on every stage: the longest and the sum, in seconds. Bare numbers, because
// their maximum is one instruction.
struct Round {
  double most = 0, sum = 0;
  void add(Seconds stage) {
    most = std::max(most, stage.value());
    sum += stage.value();
  }
  // Exposed part of the `sends` of a round. While one micro-batch goes round through all stages,
  // the slowest stage works on as many micro-batches; by as much as that is longer than the one
  // micro-batch's passes, sends are hidden.
  Seconds shown(int stages, Seconds sends) const {
    return std::max(Seconds(0), sends - Seconds(stages * most - sum));
  }
};

// Consecutive stages, and the time that a micro-batch takes through all of them and back, beyond
// the slowest stage's time for as many micro-batches (waits_for_sends()).
struct StageRun {
  Seconds excess;
  int stages = 1;
  bool is_slower_than(const StageRun& other) const {
    return excess * other.stages > other.excess * stages;
  }
};

// The run of at most `most` stages with the largest excess for each of its stages. `passes`: of the
// stages that send so; `pace`: the slowest stage's passes.
StageRun slowest_run(std::span<const PassTimes> passes, const PipelineSends& sends, Seconds pace,
                     int most) {
  StageRun best;
  const int stages = static_cast<int>(passes.size());
  for (int first = 0; first < stages; ++first) {
    StageRun run{passes[static_cast<std::size_t>(first)].total() - pace, 1};
    for (int next = first + 1; next < std::min(stages, first + most); ++next) {
      const PassTimes& stage = passes[static_cast<std::size_t>(next)];
      const Seconds send = sends.behind(sends.first_stage + next - 1);
      run = {run.excess + 2 * send + stage.total() - pace, run.stages + 1};
      if (run.is_slower_than(best)) best = run;
    }
  }
  return best;
}

// The rounds in which a pipeline of several chunks a stage fills, or drains, and their exposed
// sends: without and with communication of parameters on the same links.
class Ramp {
 public:
  Ramp(int stages, Seconds one_way, Seconds round, const BesideSends& beside)
      : stages_(stages),
        round_(round),
        beside_(beside),
        alone_(one_way),
        stretched_(beside.stretch * one_way) {}
  void add(const Round& passes) {
    work_ += Seconds(stages_ * passes.most);
    alone_ += passes.shown(stages_, round_);
    stretched_ += passes.shown(stages_, beside_.stretch * round_);
  }
  Seconds shown() const {
    const Seconds all = work_ + stretched_;
    const double share = all > beside_.time ? beside_.time / all : 1;
    return share * stretched_ + (1 - share) * alone_;
  }

 private:
  int stages_;
  Seconds round_;
  const BesideSends& beside_;
  Seconds work_, alone_, stretched_;
};

}  // namespace

Seconds fill_time(const Stack& stack, const Plan& plan, std::span<const PassTimes> passes,
                  const PipelineSends& sends, const BesideRamps& beside) {
  if (!plan.overlap.pipeline || plan.pipeline_parallel == 1) return Seconds(0);
  const PipelineShape shape = pipeline_shape(plan);
  const Seconds one_way = sends.on_the_way();
  if (shape.route != Route::loop || shape.chunks == 1) {
    // In a V a micro-batch goes down and up again, in each direction of passes. On plain trees half
    // of that shows in the simulation, on routed fabrics all.
    const int ways = shape.route == Route::vee && !sends.hops.empty() ? 4 : 2;
    return ways * one_way * std::max(0.0, 1 - 2 * stack.overlap_slowdown);
  }
  const Seconds around = sends.around();
  Ramp fills(shape.stages, one_way, around, beside.filling);
  Ramp drains(shape.stages, one_way, around, beside.draining);
  const auto chunks = static_cast<std::size_t>(shape.chunks);
  for (std::size_t chunk = 1; chunk < chunks; ++chunk) {
    Round forward, backward;
    for (std::size_t at = chunk; at < passes.size(); at += chunks) {
      forward.add(passes[at - 1].forward);
      backward.add(passes[at].backward());
    }
    fills.add(forward);
    drains.add(backward);
  }
  return fills.shown() + drains.shown();
}

Seconds waits_for_sends(const Plan& plan, std::span<const PassTimes> passes,
                        const PipelineSends& sends) {
  const PipelineShape shape = pipeline_shape(plan);
  const Schedule& schedule = *plan.schedule;
  // Whether a stage has as many micro-batches in flight as there are stages from it to the last.
  const bool one_each = shape.route == Route::loop && shape.chunks == 1 &&
                        !schedule.splits_backward && schedule.listed == nullptr &&
                        schedule.chunks_in_flight(shape, shape.stages - 1) == 1;
  // Under DualPipe neighbours wait for each other before every pair of passes. The first and the
  // last ones are in fill_time().
  const bool both_ways = shape.route == Route::both_ways;
  if (!(one_each || both_ways) || !plan.overlap.pipeline || shape.stages == 1) return Seconds(0);
  Seconds slowest;
  for (const PassTimes& stage : passes) slowest = std::max(slowest, stage.total());
  passes = passes.subspan(static_cast<std::size_t>(sends.first_stage),
                          static_cast<std::size_t>(sends.stages));
  if (both_ways) {
    const StageRun run = slowest_run(passes, sends, slowest, shape.stages);
    return (shape.microbatches - 3) * run.excess / run.stages;
  }
  // The slowest run delays every group of as many micro-batches as it has stages; the micro-batches
  // that are left over are delayed by the slowest run of at most so many stages.
  Seconds waits;
  int left = shape.microbatches - 1;
  while (left > 1) {
    const StageRun run = slowest_run(passes, sends, slowest, left);
    if (run.excess <= Seconds(0)) break;
    const int turns = left / run.stages;
    waits += turns * run.excess;
    left %= run.stages;
  }
  return waits;
}

}  // namespace trainyard
