#include "planner/passes/pass_moves.h"

#include <algorithm>
#include <random>

#include "model/schedule/play.h"

namespace trainyard {
namespace {

// Numbers the micro-batches anew, so that passes of a kind stay in their order whichever was moved.
// False where a gradient would come before the pass that it needs.
bool number_passes(std::vector<Pass>& list) {
  int forwards = 0, gradients = 0, weights = 0;
  for (Pass& pass : list) {
    switch (pass.kind) {
      case PassKind::forward:
        pass.microbatch = forwards++;
        break;
      case PassKind::backward:
      case PassKind::input_gradient:
        pass.microbatch = gradients++;
        break;
      case PassKind::weight_gradient:
        pass.microbatch = weights++;
        break;
    }
    if (gradients > forwards || weights > gradients) return false;
  }
  return true;
}

class Mover {
 public:
  Mover(const PassOrderProblem& problem, PassOrder& order) : problem_(problem), order_(order) {}

  void try_changes() {
    const PassList before = order_.passes;
    bool possible = move_one();
    if (drawn(2) == 0) possible = move_one() && possible;
    possible = possible && keeps_limits(problem_, order_.passes);
    const auto time = possible ? played_time(problem_, order_.passes) : std::nullopt;
    if (time && *time <= order_.time) {
      order_.time = *time;
    } else {
      order_.passes = before;
    }
  }

 private:
  static constexpr int kFarthest = 4;  // places

  int drawn(std::size_t count) { return static_cast<int>(random_() % count); }
  bool move_one() {
    std::vector<Pass>& list = order_.passes[static_cast<std::size_t>(drawn(order_.passes.size()))];
    const auto size = static_cast<int>(list.size());
    const int from = drawn(list.size());
    const int to = std::clamp(from + drawn(2 * kFarthest + 1) - kFarthest, 0, size - 1);
    const auto first = list.begin() + std::min(from, to);
    const auto end = list.begin() + std::max(from, to) + 1;
    std::rotate(first, from < to ? first + 1 : end - 1, end);
    return number_passes(list);
  }

  const PassOrderProblem& problem_;
  PassOrder& order_;
  std::minstd_rand random_{1};
};

}  // namespace

std::optional<Seconds> played_time(const PassOrderProblem& problem, const PassList& passes) {
  const PipelineShape shape{.stages = static_cast<int>(problem.stages.size()),
                            .microbatches = problem.microbatches};
  PlayTimes times = play_times(shape, problem.stages);
  times.send = problem.send;
  const auto played = play(passes, shape, times);
  if (!played) return std::nullopt;
  return problem.barrier ? played->makespan : played->longest_span;
}

void move_passes(const PassOrderProblem& problem, const std::function<bool()>& goes_on,
                 PassOrder& order) {
  Mover mover(problem, order);
  while (order.time > order.bound * (1 + 1e-9) && goes_on()) mover.try_changes();
}

}  // namespace trainyard
