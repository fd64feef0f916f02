#include "planner/passes/list_scheduler.h"

#include <algorithm>
#include <array>
#include <limits>

#include "model/schedule/play.h"

namespace trainyard {
namespace {

constexpr Ticks kNever = std::numeric_limits<Ticks>::max();

std::size_t as_index(int index) { return static_cast<std::size_t>(index); }

Seconds longest_step(const PassOrderProblem& problem) {
  const PipelineShape shape{.stages = static_cast<int>(problem.stages.size()),
                            .microbatches = problem.microbatches};
  PlayTimes times = play_times(shape, problem.stages);
  times.send = problem.send;
  return longest_play(shape, times);
}

}  // namespace

ListScheduler::ListScheduler(const PassOrderProblem& problem)
    : problem_(problem), clock_(longest_step(problem)), send_(clock_.ticks(problem.send)) {
  const std::size_t count = problem.stages.size();
  stages_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const PassTimes& times = problem.stages[i];
    stages_.push_back({.forward = clock_.ticks(times.forward),
                       .input = clock_.ticks(times.input_gradient),
                       .weight = clock_.ticks(times.weight_gradient),
                       .room = problem.most_in_flight[i]});
  }
  order_.resize(count);
}

void ListScheduler::reset() {
  const std::size_t all = stages_.size() * as_index(problem_.microbatches);
  forward_inputs_.assign(all, kNever);
  gradients_.assign(all, kNever);
  std::fill_n(forward_inputs_.begin(), problem_.microbatches, 0);
  queue_ = {};
  most_waited_ = 0;
  for (std::vector<PassKind>& list : order_) list.clear();
  for (Stage& stage : stages_) {
    stage.forwards = stage.inputs = stage.weights = stage.version = 0;
    stage.start = stage.now = stage.waited = 0;
  }
}

bool ListScheduler::has_room(const Stage& stage) const {
  constexpr double kRoomRounding = 1e-9;
  const double kept = problem_.kept_for_weights;
  const double used = stage.forwards - (1 - kept) * stage.inputs - kept * stage.weights;
  return used + 1 <= stage.room + kRoomRounding;
}

bool ListScheduler::prefers_weight(const Stage& stage, Ticks next,
                                   const StagePolicy& policy) const {
  if (next == kNever) return true;
  const auto delay = static_cast<Ticks>(policy.slack * static_cast<double>(stage.weight));
  if (stage.now + stage.weight - delay <= next) return true;
  return policy.in_turn && stage.waited + next - stage.now > most_waited_;
}

Ticks ListScheduler::decide(int index, const StagePolicy& policy) {
  Stage& stage = stages_[as_index(index)];
  const bool more = stage.forwards < problem_.microbatches;
  const bool room = has_room(stage);
  const bool goes_ahead = more && room && stage.forwards - stage.inputs < policy.ahead;
  const bool gradient_may_come = stage.inputs < stage.forwards && !(policy.in_turn && goes_ahead);
  const Ticks forward = goes_ahead ? forward_input(index, stage.forwards) : kNever;
  const Ticks gradient_at = gradient_may_come ? gradient(index, stage.inputs) : kNever;
  const Ticks now = stage.now;
  const Ticks next = std::min(forward, gradient_at);
  stage.next = gradient_at <= std::max(now, forward) ? PassKind::input_gradient : PassKind::forward;
  if (next <= now) return now;
  if (stage.inputs > stage.weights) {
    if ((more && !room) || prefers_weight(stage, next, policy)) {
      stage.next = PassKind::weight_gradient;
      return now;
    }
  }
  if (next != kNever && gradient_at > forward) stage.next = PassKind::forward;
  return next;
}

void ListScheduler::enqueue(int index, const StagePolicy& policy) {
  const Ticks when = decide(index, policy);
  const int version = ++stages_[as_index(index)].version;
  if (when != kNever) queue_.push({when, index, version});
}

int ListScheduler::commit(int index, Ticks when) {
  Stage& stage = stages_[as_index(index)];
  std::vector<PassKind>& list = order_[as_index(index)];
  if (list.empty()) {
    stage.start = when;
  } else {
    stage.waited += when - stage.now;
    most_waited_ = std::max(most_waited_, stage.waited);
  }
  list.push_back(stage.next);
  if (stage.next == PassKind::weight_gradient) {
    stage.now = when + stage.weight;
    ++stage.weights;
    return -1;
  }
  if (stage.next == PassKind::input_gradient) {
    stage.now = when + stage.input;
    const int microbatch = stage.inputs++;
    if (index == 0) return -1;
    gradient(index - 1, microbatch) = stage.now + send_;
    return index - 1;
  }
  stage.now = when + stage.forward;
  const int microbatch = stage.forwards++;
  if (as_index(index) + 1 == stages_.size()) {
    gradient(index, microbatch) = stage.now;
    return -1;
  }
  forward_input(index + 1, microbatch) = stage.now + send_;
  return index + 1;
}

Ticks ListScheduler::run(const std::vector<StagePolicy>& policies) {
  reset();
  const int count = static_cast<int>(stages_.size());
  for (int i = 0; i < count; ++i) enqueue(i, policies[as_index(i)]);
  while (!queue_.empty()) {
    const Decision next = queue_.top();
    queue_.pop();
    if (next.version != stages_[as_index(next.stage)].version) continue;
    const int woken = commit(next.stage, next.at);
    if (woken >= 0) enqueue(woken, policies[as_index(woken)]);
    enqueue(next.stage, policies[as_index(next.stage)]);
  }
  return result();
}

Ticks ListScheduler::result() const {
  Ticks longest = 0;
  for (const Stage& stage : stages_) {
    if (stage.weights < problem_.microbatches) return kNever;
    longest = std::max(longest, stage.now - (problem_.barrier ? 0 : stage.start));
  }
  return longest;
}

PassList ListScheduler::passes() const {
  PassList lists(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    std::array<int, 4> next{};
    lists[i].reserve(order_[i].size());
    for (const PassKind kind : order_[i]) {
      lists[i].push_back({kind, next[static_cast<std::size_t>(kind)]++, 0});
    }
  }
  return lists;
}

}  // namespace trainyard
