#include "planner/layers/allocation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "model/bisection.h"
#include "model/cost/memory/repeated_layers.h"
#include "model/plan/dealt_layers.h"

namespace trainyard {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Sums over contiguous layers, as plain numbers in seconds and bytes: this is the inner loop.
struct LayerRun {
  int count = 0;
  double time = 0, selective = 0, full = 0, states = 0;
  double saved = 0, saved_selective = 0, saved_by_full = 0, between_halves = 0;
  double largest_saved = 0, largest_core = 0, largest_gradients = 0;
  double gathered_alone = 0, gathered_by_two = 0;  // most of a layer, and of two neighbours
  double last_gathered = 0, last_beside = 0;       // of the layer that was added last
  double least_spared = kInfinity;                 // by recomputing one of them

  void add(const AllocatedLayer& layer) {
    ++count;
    time += layer.time.value();
    selective += layer.selective.value();
    full += layer.full.value();
    states += layer.states.value();
    saved += layer.saved.value();
    saved_selective += layer.saved_selective.value();
    saved_by_full += layer.saved_by_full.value();
    between_halves += layer.between_halves.value();
    largest_core = std::max(largest_core, layer.saved.value() - layer.between_halves.value());
    largest_saved = std::max(largest_saved, layer.saved.value());
    least_spared = std::min(least_spared, (layer.saved - layer.saved_by_full).value());
    largest_gradients = std::max(largest_gradients, layer.gradients.value());
    const double gathered = layer.gathered.value(), beside = layer.gathered_beside.value();
    gathered_alone = std::max(gathered_alone, gathered);
    gathered_by_two =
        std::max({gathered_by_two, gathered, gathered + last_beside, last_gathered + beside});
    last_gathered = gathered;
    last_beside = beside;
  }
};

// Adds from the last layer on, because the sweep adds further layers in front.
LayerRun run_of(const std::vector<AllocatedLayer>& layers) {
  LayerRun run;
  for (std::size_t i = layers.size(); i-- > 0;) run.add(layers[i]);
  return run;
}

struct Choice {
  double time = kInfinity;  // infinite: no recomputation is enough
  Recompute recompute;
};

void take_faster(Choice& best, double time, Recompute recompute) {
  if (time < best.time) best = {time, recompute};
}

// Bytes that are free for kept activations: with nothing recomputed at the fullest moment, and
// while a layer's backward pass runs.
struct Room {
  double plain = 0, in_backward = 0;
};

Room room_of(const AllocatedStage& stage, const LayerRun& s) {
  const bool are_alone = s.count <= std::max(1, stage.chunks);  // in their chunks
  const double gathered = are_alone ? s.gathered_alone : s.gathered_by_two;
  const double held = stage.fixed.value() + s.states + gathered;
  const double left = stage.capacity.value() - held;
  const double head = stage.head.value();
  return {left - std::max(head, s.largest_gradients), left - s.largest_gradients};
}

// Micro-batches in flight on a stage with these layers, its own included.
double in_flight(const AllocatedStage& stage, const LayerRun& s) {
  if (stage.in_flight_by_layers.empty()) return stage.in_flight;
  return stage.in_flight_by_layers[static_cast<std::size_t>(s.count) - stage.own.size()];
}

// Activations kept of all micro-batches in flight, nothing recomputed.
double kept(const AllocatedStage& stage, const LayerRun& s) {
  return s.saved * in_flight(stage, s) - (s.saved - s.between_halves) * stage.past_input_gradient;
}

// The fewest layers to recompute so that what is kept fits into `room`; more than there are: none
// suffices. For `waiting` micro-batches recomputed activations are in memory again.
int layers_to_recompute(const AllocatedStage& stage, const LayerRun& s, double waiting,
                        double room) {
  const double excess = kept(stage, s) - room;
  if (excess <= 0) return std::min(1, s.count);
  const double gain = kept(stage, s) - s.saved_by_full * in_flight(stage, s) -
                      (s.between_halves - s.saved_by_full) * waiting;
  if (excess > gain) return s.count + 1;
  const int layers = static_cast<int>(std::ceil(s.count * (excess / gain) * (1 - 1e-14)));
  return std::clamp(layers, 1, s.count);
}

// What the backward pass of a recomputed layer needs beside the activations in flight, where
// `repeated` layers of the stage are recomputed.
double back_beside_kept(const AllocatedStage& stage, const LayerRun& s, int repeated) {
  if (stage.chunks == 0) return s.largest_saved;
  const int own = static_cast<int>(stage.own.size());
  const int smallest = stage.chunks == 1 ? s.count : (s.count - own) / stage.chunks;
  const int behind = layers_behind(smallest, stage.chunks, repeated);
  const double gone = behind > 0 ? behind * s.least_spared : 0;
  return beside_kept(Bytes(s.largest_saved), Bytes(gone)).value();
}

// The same for both moments of Room; recomputed activations stay between the halves of a split
// backward pass.
int layers_to_recompute(const AllocatedStage& stage, const LayerRun& s, const Room& room) {
  const double waiting = stage.between_halves - stage.at_work;
  const auto is_enough = [&](int repeated) {
    const double beside = room.in_backward - back_beside_kept(stage, s, repeated);
    return layers_to_recompute(stage, s, waiting, beside) <= repeated;
  };
  const int fewest = layers_to_recompute(stage, s, waiting, room.plain);
  // Mostly the fewest are enough, or not even all.
  int layers = fewest;
  if (fewest <= s.count && !is_enough(fewest)) {
    layers = is_enough(s.count) ? first_where(fewest + 1, s.count, is_enough) : s.count + 1;
  }
  if (stage.at_work == 0) return layers;
  return std::max(layers, layers_to_recompute(stage, s, stage.between_halves,
                                              room.in_backward - s.largest_core));
}

bool are_alike(const std::vector<AllocatedLayer>& layers) {
  return std::ranges::all_of(layers,
                             [&](const AllocatedLayer& layer) { return layer == layers.front(); });
}

class Allocator {
 public:
  explicit Allocator(const AllocationProblem& problem)
      : problem_(problem),
        layers_(static_cast<int>(problem.layers.size())),
        width_(static_cast<std::size_t>(layers_) + 1),
        alike_(are_alike(problem.layers)),
        choices_(problem.stages.size() * (alike_ ? 1 : width_)) {
    for (const AllocatedStage& stage : problem.stages) own_.push_back(run_of(stage.own));
  }

  std::optional<Allocation> run() {
    const auto balanced = sweep(kInfinity, [](double a, double b) { return std::max(a, b); });
    if (!balanced) return std::nullopt;
    offer(*balanced);
    const double shortest = longest(*balanced);
    if (const auto cheapest = sweep(shortest, std::plus<>())) offer(*cheapest);
    explore(shortest);
    return std::move(best_);
  }

 private:
  using Stages = std::vector<StageAllocation>;

  Choice choose(const AllocatedStage& stage, const LayerRun& s) const {
    const Room room = room_of(stage, s);
    const double own = stage.time.value();
    const double time = s.time * stage.slowness;
    Choice best;
    if ((problem_.none || s.count == 0) && kept(stage, s) <= room.plain) {
      take_faster(best, own + time, {});
    }
    if (s.count == 0) return best;
    if (problem_.selective && s.saved_selective * in_flight(stage, s) <= room.plain) {
      take_faster(best, own + time + s.selective * stage.slowness, {RecomputeMode::selective});
    }
    if (problem_.full) {
      const int needed = layers_to_recompute(stage, s, room);
      const int named = std::min(problem_.full_layers, s.count);
      const int again = named > 0 ? named : needed;
      const double share = static_cast<double>(again) / s.count;
      if (needed <= again && again <= s.count) {
        take_faster(best, own + time + s.full * stage.slowness * share,
                    {RecomputeMode::full, again});
      }
    }
    return best;
  }

  // The choice of a stage with some run of layers.
  struct CountedChoice {
    double least;  // time with nothing repeated
    Choice choice;
  };
  // The choices of a stage with each run of layers before the same end, computed as far as sweeps
  // have asked: all sweeps ask for the same ones.
  struct ChoicesOfRuns {
    LayerRun next;
    std::vector<CountedChoice> by_layers;
    bool ended = false;  // `next` is too large whatever is recomputed
  };

  ChoicesOfRuns& runs_before(std::size_t j, int end) {
    return choices_[alike_ ? j : j * width_ + at(end)];
  }

  // Adds the choice for a run of one more layer; false: it does not fit, nor does any longer run.
  bool add_choice(std::size_t j, int end, ChoicesOfRuns& runs) const {
    if (runs.ended) return false;
    const AllocatedStage& stage = problem_.stages[j];
    const std::size_t layers = runs.by_layers.size();
    if (layers == 0) {
      runs.next = own_[j];
    } else {
      runs.next.add(alike_ ? problem_.layers.front() : problem_.layers[at(end) - layers]);
    }
    runs.ended = too_large(stage, runs.next);
    if (runs.ended) return false;
    runs.by_layers.push_back({least_time(stage, runs.next), choose(stage, runs.next)});
    return true;
  }

  static double least_time(const AllocatedStage& stage, const LayerRun& s) {
    return stage.time.value() + s.time * stage.slowness;
  }

  // Whether these layers do not fit whatever is recomputed; more layers fit even less.
  static bool too_large(const AllocatedStage& stage, const LayerRun& s) {
    const double repeating = std::min(s.saved_selective, s.saved_by_full) * in_flight(stage, s);
    return std::min(kept(stage, s), repeating) > room_of(stage, s).plain;
  }

  // The allocation with the least `measure` of its stages' times (their sum or maximum), where no
  // stage takes longer than `threshold`.
  template <typename Measure>
  std::optional<Stages> sweep(double threshold, Measure measure) {
    const std::size_t stages = problem_.stages.size();
    from_.assign(stages * width_, -1);
    std::vector<double> before(width_, kInfinity), after(width_);
    before[0] = 0;
    for (std::size_t j = 0; j < stages; ++j) {
      for (int end = j + 1 < stages ? 0 : layers_; end <= layers_; ++end) {
        after[at(end)] = extend(j, end, threshold, before, measure);
      }
      before.swap(after);
    }
    if (before[at(layers_)] == kInfinity) return std::nullopt;
    return trace();
  }

  // The best of all ways to end stage `j` with layer `end`.
  template <typename Measure>
  double extend(std::size_t j, int end, double threshold, const std::vector<double>& before,
                Measure measure) {
    double best = kInfinity;
    ChoicesOfRuns& runs = runs_before(j, end);
    for (int count = 0; count <= end; ++count) {
      if (at(count) == runs.by_layers.size() && !add_choice(j, end, runs)) break;
      const CountedChoice& of = runs.by_layers[at(count)];
      // No longer run beats the best: its time alone is more.
      if (of.least > std::min(threshold, best)) break;
      const double so_far = before[at(end - count)];
      if (so_far >= best || of.choice.time > threshold) continue;
      const double value = measure(so_far, of.choice.time);
      if (value < best) {
        best = value;
        from_[j * width_ + at(end)] = end - count;
      }
    }
    return best;
  }

  Stages trace() {
    Stages stages(problem_.stages.size());
    int end = layers_;
    for (std::size_t j = stages.size(); j-- > 0;) {
      const int first = from_[j * width_ + at(end)];
      const Choice& choice = runs_before(j, end).by_layers[at(end - first)].choice;
      stages[j] = {end - first, choice.recompute, Seconds(choice.time), own_[j].count};
      end = first;
    }
    return stages;
  }

  // A longest stage above the balanced one pays where it saves recomputation. With g(M) the least
  // sum of stages that take M at most, a step whose longest stage lies in (M, M'] is at least (m −
  // r)·M + r·g(M'): intervals of M are halved until this bound meets the best.
  void explore(double balanced) {
    struct Interval {
      double low, high, sum;  // longest stage in (low, high]; their sum is at least this
    };
    double sum = 0;
    for (const AllocatedStage& stage : problem_.stages) sum += stage.time.value();
    std::vector<Interval> open = {{balanced, highest(), sum}};
    while (!open.empty()) {
      const Interval interval = open.back();
      open.pop_back();
      if (interval.high <= interval.low || !can_improve(interval.low, interval.sum)) continue;
      const auto found = sweep(interval.high, std::plus<>());
      if (!found) continue;
      offer(*found);
      const double most = longest(*found);
      const double least_sum = total(*found);
      if (most <= interval.low || !can_improve(interval.low, least_sum)) continue;
      const double middle = interval.low + (most - interval.low) / 2;
      open.push_back({interval.low, middle, least_sum});
      open.push_back({middle, std::nextafter(most, 0.0), least_sum});
    }
  }

  double weight() const { return problem_.microbatches - problem_.fill; }

  // No allocation with a longer stage is better, even if nothing else took any time.
  double highest() const { return weight() > 0 ? best_->step.value() / weight() : kInfinity; }

  bool can_improve(double longest, double sum) const {
    return weight() * longest + problem_.fill * sum < best_->step.value() * (1 - 1e-12);
  }

  void offer(const Stages& stages) {
    const Seconds step = allocation_step(problem_, stages);
    if (!best_ || step < best_->step) best_ = {stages, step};
  }

  static double longest(const Stages& stages) {
    double most = 0;
    for (const StageAllocation& stage : stages) most = std::max(most, stage.time.value());
    return most;
  }
  static double total(const Stages& stages) {
    double sum = 0;
    for (const StageAllocation& stage : stages) sum += stage.time.value();
    return sum;
  }
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  const AllocationProblem& problem_;
  int layers_;
  std::size_t width_;
  bool alike_;                          // the layers: then one last layer stands for all
  std::vector<ChoicesOfRuns> choices_;  // [stage][end]
  std::vector<LayerRun> own_;           // of each stage, whatever it is dealt
  std::vector<int> from_;               // [stage][end]: where the stage's layers begin
  std::optional<Allocation> best_;
};

}  // namespace

std::optional<Allocation> allocate_layers(const AllocationProblem& problem) {
  return Allocator(problem).run();
}

Seconds allocation_step(const AllocationProblem& problem,
                        const std::vector<StageAllocation>& stages) {
  Seconds longest, sum;
  for (const StageAllocation& stage : stages) {
    longest = std::max(longest, stage.time);
    sum += stage.time;
  }
  return problem.microbatches * longest + problem.fill * (sum - longest);
}

}  // namespace trainyard
