#include "tests/planner/layers/every_allocation.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace trainyard {
namespace {

std::size_t to_size(int index) { return static_cast<std::size_t>(index); }

// The activations that one layer adds, while it is recomputed in full, to those counted as in
// flight. The backward pass goes from the last layer of a chunk to the first, and the first `again`
// layers are recomputed. So by then the layers behind them have freed what they kept beyond their
// inputs; the smallest chunk has the fewest of these layers. Handbook §7: a peak is the maximum
// over time.
double beside_kept(const AllocatedStage& stage, double repeated, double spared, int count,
                   int again) {
  if (stage.chunks == 0) return repeated;
  std::vector<int> left(to_size(stage.chunks), count / stage.chunks);
  for (int i = 0; i < again; ++i) --left[to_size(i % stage.chunks)];
  return std::max(0.0, repeated - std::max(0, *std::ranges::min_element(left)) * spared);
}

// Bytes that ZeRO-3 has gathered while layer i is at work, including the share of the layer in
// front of it where both are gathered at once.
double gathered_at(const AllocationProblem& problem, int i, bool has_neighbour) {
  const AllocatedLayer& layer = problem.layers[to_size(i)];
  if (!has_neighbour) return layer.gathered.value();
  const AllocatedLayer& before = problem.layers[to_size(i - 1)];
  const Bytes two =
      std::max(layer.gathered + before.gathered_beside, before.gathered + layer.gathered_beside);
  return std::max(layer.gathered, two).value();
}

}  // namespace

double stage_time(const AllocationProblem& problem, int j, int first, int end, RecomputeMode mode,
                  int again) {
  const AllocatedStage& stage = problem.stages[to_size(j)];
  const int count = end - first;
  double time = 0, kept = 0, held = stage.fixed.value(), gradients = 0, gathered = 0, largest = 0;
  double repeated = 0, core = 0, gone = 0, spared = kInfinity;
  const double share = mode == RecomputeMode::full ? static_cast<double>(again) / count : 0;
  for (int i = first; i < end; ++i) {
    const AllocatedLayer& layer = problem.layers[to_size(i)];
    time += layer.time.value() + share * layer.full.value();
    kept += share * layer.saved_by_full.value() + (1 - share) * layer.saved.value();
    repeated += share * (layer.between_halves.value() - layer.saved_by_full.value());
    core = std::max(core, layer.saved.value() - layer.between_halves.value());
    gone += layer.saved.value() - layer.between_halves.value();
    if (mode == RecomputeMode::selective) {
      time += layer.selective.value();
      kept += layer.saved_selective.value() - layer.saved.value();
    }
    held += layer.states.value();
    gradients = std::max(gradients, layer.gradients.value());
    const bool some_share_chunks = count > std::max(1, stage.chunks);
    gathered = std::max(gathered, gathered_at(problem, i, some_share_chunks && i > first));
    largest = std::max(largest, layer.saved.value());
    spared = std::min(spared, (layer.saved - layer.saved_by_full).value());
  }
  const double ended = mode == RecomputeMode::selective ? 0 : (1 - share) * gone;
  const bool full = mode == RecomputeMode::full;
  const double beside = full ? beside_kept(stage, largest, spared, count, again) : 0;
  // With a split backward pass, while the last layer runs its first half, all other layers still
  // hold what their second halves read.
  const double waiting = repeated * (stage.between_halves - stage.at_work);
  const double peak =
      held + kept * stage.in_flight - ended * stage.past_input_gradient + gathered + waiting +
      std::max({stage.head.value(), gradients + beside,
                stage.at_work > 0 && again > 0 ? repeated * stage.at_work + core + gradients : 0});
  const double rounding = 1e-12 * stage.capacity.value();
  return peak <= stage.capacity.value() + rounding ? stage.time.value() + time * stage.slowness
                                                   : kInfinity;
}

std::vector<double> all_times(const AllocationProblem& problem, int j, int first, int end) {
  std::vector<double> times;
  if (problem.none || first == end) {
    times.push_back(stage_time(problem, j, first, end, RecomputeMode::none, 0));
  }
  if (problem.selective && first < end) {
    times.push_back(stage_time(problem, j, first, end, RecomputeMode::selective, 0));
  }
  const int named = std::min(problem.full_layers, end - first);
  for (int again = 1; problem.full && again <= end - first; ++again) {
    if (named > 0 && again != named) continue;
    times.push_back(stage_time(problem, j, first, end, RecomputeMode::full, again));
  }
  return times;
}

double brute_force(const AllocationProblem& problem) {
  const int stages = static_cast<int>(problem.stages.size());
  const int layers = static_cast<int>(problem.layers.size());
  double best = kInfinity;
  const auto index = [layers](int j, int first, int end) {
    return to_size((j * (layers + 1) + first) * (layers + 1) + end);
  };
  std::vector<std::vector<double>> times(index(stages, 0, 0));
  for (int j = 0; j < stages; ++j) {
    for (int first = 0; first <= layers; ++first) {
      for (int end = first; end <= layers; ++end) {
        times[index(j, first, end)] = all_times(problem, j, first, end);
      }
    }
  }
  const std::function<void(int, int, double, double)> place = [&](int j, int first, double longest,
                                                                  double sum) {
    if (j == stages) {
      if (first == layers) {
        best = std::min(best, problem.microbatches * longest + problem.fill * (sum - longest));
      }
      return;
    }
    for (int end = j + 1 == stages ? layers : first; end <= layers; ++end) {
      for (const double time : times[index(j, first, end)]) {
        if (time < kInfinity) place(j + 1, end, std::max(longest, time), sum + time);
      }
    }
  };
  place(0, 0, 0, 0);
  return best;
}

}  // namespace trainyard
