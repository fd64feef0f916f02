#include "planner/passes/pass_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "planner/passes/list_scheduler.h"
#include "planner/passes/pass_moves.h"

namespace trainyard {
namespace {

using Policies = std::vector<StagePolicy>;

PipelineShape shape_of(const PassOrderProblem& problem) {
  return {.stages = static_cast<int>(problem.stages.size()), .microbatches = problem.microbatches};
}

// What a pass adds to the activations that its stage keeps.
double kept_by(const PassOrderProblem& problem, PassKind kind) {
  switch (kind) {
    case PassKind::forward:
      return 1;
    case PassKind::backward:
      return -1;
    case PassKind::input_gradient:
      return problem.kept_for_weights - 1;
    case PassKind::weight_gradient:
      break;
  }
  return -problem.kept_for_weights;
}

// How many forward passes each stage runs until its first gradient is there, as far as it has room:
// the last of them ends before the gradient comes or, where it may be late, after it. A stage has
// fewer than the stage before, which feeds it (Qi et al. 2023, section 3.1).
std::vector<int> forwards_to_fill(const PassOrderProblem& problem, bool may_be_late) {
  const std::size_t count = problem.stages.size();
  std::vector<Seconds> first_end(count);  // of the first forward pass
  Seconds arrival;
  for (std::size_t j = 0; j < count; ++j) {
    first_end[j] = arrival + problem.stages[j].forward;
    arrival = first_end[j] + problem.send;
  }
  std::vector<int> forwards(count, 1);
  Seconds gradient = first_end.back();
  for (std::size_t j = count; j-- > 0;) {
    const PassTimes& own = problem.stages[j];
    const double room = std::min<double>(problem.microbatches, problem.most_in_flight[j] + 1e-9);
    Seconds end = first_end[j];
    for (; forwards[j] + 1 <= room; ++forwards[j]) {
      const Seconds next = end + own.forward;
      if (may_be_late ? end >= gradient : next > gradient) break;
      end = next;
    }
    gradient = std::max(end, gradient) + own.input_gradient + problem.send;
  }
  for (std::size_t j = 1; j < count; ++j) {
    forwards[j] = std::min(forwards[j], std::max(1, forwards[j - 1] - 1));
  }
  return forwards;
}

class Search {
 public:
  Search(const PassOrderProblem& problem, std::int64_t budget, const std::atomic<bool>* interrupted)
      : problem_(problem),
        scheduler_(problem),
        stages_(static_cast<int>(problem.stages.size())),
        passes_of_a_run_(std::int64_t{3} * stages_ * problem.microbatches),
        bound_(pass_order_bound(problem)),
        budget_(budget),
        interrupted_(interrupted) {}

  PassOrder run() {
    take_turns();
    sweep();
    improve();
    PassOrder best{.passes = {}, .time = Seconds(0), .bound = bound_};
    scheduler_.run(best_);
    best.passes = scheduler_.passes();
    best.time = played_time(problem_, best.passes).value();
    for (const Schedule* schedule : schedules()) take_if_better(*schedule, best);
    const auto goes_on = [&] {
      placed_ += passes_of_a_run_;
      return !is_spent(budget_);
    };
    move_passes(problem_, goes_on, best);
    return best;
  }

 private:
  // The first half of the budget is for lists made by policies, the rest for moving passes of the
  // best one.
  bool is_spent(std::int64_t budget) const {
    return placed_ >= budget || (interrupted_ != nullptr && interrupted_->load());
  }
  // Whether trying policies ends; not before one was tried.
  bool is_over() const {
    if (best_.empty()) return false;
    return is_spent(budget_ / 2) || scheduler_.seconds(best_time_) <= bound_ * (1 + 1e-9);
  }

  bool try_out(const Policies& policies, Ticks at_most) {
    placed_ += passes_of_a_run_;
    const Ticks time = scheduler_.run(policies);
    if (best_.empty() || time < best_time_) {
      best_ = policies;
      best_time_ = time;
    }
    return time <= at_most;
  }

  // Tries policies whose stages run forward passes for as long as they would wait for their first
  // gradient, and then forward passes and gradients in turn.
  void take_turns() {
    constexpr double kSlacks[] = {0, 0.5};
    for (const bool may_be_late : {false, true}) {
      const std::vector<int> ahead = forwards_to_fill(problem_, may_be_late);
      for (const double slack : kSlacks) {
        if (is_over()) return;
        Policies policies;
        policies.reserve(ahead.size());
        for (const int forwards : ahead) policies.push_back({forwards, slack, true});
        try_out(policies, 0);
      }
    }
  }

  // Tries limits `ahead` in proportion to the number of stages behind: a factor of 2 fills the wait
  // for the first gradient, 1 is 1F1B. `more` raises the limits of the last stages.
  void sweep() {
    constexpr double kSlacks[] = {0.5, 0};
    constexpr double kAhead[] = {1.8, 1.7, 2, 1.6, 1, 1.2, 1.4, 2.4};
    constexpr double kMoreAhead[] = {0, 0.25};
    for (const double slack : kSlacks) {
      for (const double ahead : kAhead) {
        for (const double more : kMoreAhead) {
          if (is_over()) return;
          Policies policies;
          policies.reserve(problem_.stages.size());
          for (int i = 0; i < stages_; ++i) {
            const auto forwards = std::lround(ahead * (stages_ - i) + more * i);
            policies.push_back({std::max(1, static_cast<int>(forwards)), slack, false});
          }
          try_out(policies, 0);
        }
      }
    }
  }

  // Local search: changes the policies of some neighbouring stages, and keeps what is not slower.
  void improve() {
    Policies current = best_;
    Ticks time = best_time_;
    while (!is_over()) {
      Policies changed = current;
      for (int changes = 1 + drawn(3); changes > 0; --changes) change(changed);
      if (try_out(changed, time)) {
        current = std::move(changed);
        time = best_time_;
      }
    }
  }

  int drawn(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  void change(Policies& policies) {
    const int first = drawn(stages_);
    const int end = std::min(stages_, first + 1 + drawn(std::max(1, stages_ / 4)));
    const bool ahead = drawn(2) == 0;
    const int step = drawn(5) - 2;
    const double slack = drawn(9) / 8.0;
    for (int i = first; i < end; ++i) {
      StagePolicy& policy = policies[static_cast<std::size_t>(i)];
      if (ahead) {
        policy.ahead = std::max(1, policy.ahead + step);
      } else {
        policy.slack = slack;
      }
    }
  }

  void take_if_better(const Schedule& schedule, PassOrder& best) const {
    const PipelineShape shape = shape_of(problem_);
    if (schedule.route != Route::loop || schedule.needs_chunks || !schedule.accepts(shape)) return;
    PassList passes = schedule.passes(shape);
    if (!keeps_limits(problem_, passes)) return;
    const Seconds time = played_time(problem_, passes).value();
    if (time < best.time) best = {std::move(passes), time, best.bound};
  }

  const PassOrderProblem& problem_;
  ListScheduler scheduler_;
  int stages_;
  std::int64_t passes_of_a_run_;
  Seconds bound_;
  std::int64_t budget_, placed_ = 0;
  const std::atomic<bool>* interrupted_;
  std::minstd_rand random_{1};
  Policies best_;
  Ticks best_time_ = std::numeric_limits<Ticks>::max();
};

// How many weight gradients must run before a stage's last forward pass, for that to have room.
double forced_weights(const PassOrderProblem& problem, std::size_t stage) {
  const double kept = problem.kept_for_weights;
  const double m = problem.microbatches;
  if (kept <= 0) return 0;
  const double without = m - (1 - kept) * (m - 1) - problem.most_in_flight[stage];
  return std::clamp(std::ceil(without / kept - 1e-9), 0.0, m - 1);
}

}  // namespace

std::optional<PassOrder> find_pass_order(const PassOrderProblem& problem, std::int64_t budget,
                                         const std::atomic<bool>* interrupted) {
  const bool possible = std::all_of(problem.most_in_flight.begin(), problem.most_in_flight.end(),
                                    [](double room) { return room >= 1; });
  if (!possible || problem.stages.empty()) return std::nullopt;
  return Search(problem, budget, interrupted).run();
}

// Goes from the last stage to the first. For stages i ≥ j: between j's first forward pass and last
// input gradient lie the ways to i and back, and all forward passes and input gradients of i with
// the weight gradients that its memory forces; at least one weight gradient of j follows.
Seconds pass_order_bound(const PassOrderProblem& problem) {
  const int m = problem.microbatches;
  Seconds behind;      // the longest of i ≥ j, between the first input and the last gradient of j
  Seconds round_trip;  // from the end of j's first forward pass to its first gradient
  std::vector<Seconds> spans(problem.stages.size());
  for (std::size_t j = problem.stages.size(); j-- > 0;) {
    const PassTimes& own = problem.stages[j];
    const bool is_last = j + 1 == problem.stages.size();
    const Seconds hop = own.forward + own.input_gradient + 2 * problem.send;
    const Seconds through =
        m * (own.forward + own.input_gradient) + forced_weights(problem, j) * own.weight_gradient;
    behind = is_last ? through : std::max(through, behind + hop);
    const double filled = std::min<double>(m, std::floor(problem.most_in_flight[j] + 1e-9));
    const Seconds waits = std::max(Seconds(0), own.forward + round_trip - filled * own.forward);
    spans[j] = std::max(behind + own.weight_gradient, m * own.total() + waits);
    round_trip += hop;
  }
  Seconds bound, arrival;
  for (std::size_t j = 0; j < spans.size(); ++j) {
    bound = std::max(bound, spans[j] + (problem.barrier ? arrival : Seconds(0)));
    arrival += problem.stages[j].forward + problem.send;
  }
  return bound;
}

bool keeps_limits(const PassOrderProblem& problem, const PassList& passes) {
  for (std::size_t stage = 0; stage < passes.size(); ++stage) {
    double kept = 0;
    for (const Pass& pass : passes[stage]) {
      kept += kept_by(problem, pass.kind);
      if (kept > problem.most_in_flight[stage] + 1e-9) return false;
    }
  }
  return true;
}

}  // namespace trainyard
