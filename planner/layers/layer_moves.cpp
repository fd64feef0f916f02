#include "planner/layers/layer_moves.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

std::size_t to_index(int index) { return static_cast<std::size_t>(index); }

// Numbers of layers: of each chunk, in the order of `layers_per_stage`, or of each stage.
using Counts = std::vector<int>;

// One choice of recomputation on a stage.
struct Way {
  Recompute recompute;
  double time = 0;   // of the stage, for one micro-batch
  bool out = false;  // a price has shown that it does not fit, or that another is better
};

// All choices of recomputation of a stage with these layers in its chunks, the fastest first. What
// the stage holds depends on nothing else, so that a choice that does not fit is marked for good.
struct StageWays {
  LayerCounts kinds{};
  Counts chunks;
  std::vector<Way> ways;
};

// Time of a layer of one kind, and what recomputation adds to it.
struct LayerTimes {
  double plain = 0, selective = 0, full = 0;
};

class LocalSearch {
 public:
  LocalSearch(const LayerMoves& moves, Candidate start, int& budget)
      : moves_(moves),
        problem_(moves.problem),
        best_(std::move(start)),
        budget_(budget),
        shape_(pipeline_shape(best_.plan)),
        stages_(to_index(best_.plan.pipeline_parallel)),
        known_(stages_.size()),
        chosen_(stages_.size()) {
    for (int layer = 0; layer < layers(); ++layer) {
      const AllocatedLayer& own = problem_.layers[to_index(layer)];
      times_[to_index(kind_of(layer))] = {own.time.value(), own.selective.value(),
                                          own.full.value()};
      least_ = std::min(least_, own.time.value());
    }
    for (std::size_t j = 0; j < stages_.size(); ++j) take_own_layers(j);
  }

  Candidate run() {
    counts_ = LayersOfChunks(best_.plan, layers()).all();
    lower_worth();
    deal(counts_);
    if (choose() && is_the_best()) {
      tried_.insert(counts_);
    } else {
      take(counts_);
    }
    take(layers_of_chunks(best_.plan, of_stages(counts_)));
    while (move_once() || move_between_chunks() || repeat_more_once() || move_pairs()) {
    }
    return std::move(best_);
  }

 private:
  // Layers that the stage holds besides those dealt to it.
  void take_own_layers(std::size_t stage) {
    const std::vector<AllocatedLayer>& own = problem_.stages[stage].own;
    stages_[stage].own_layers = static_cast<int>(own.size());
    if (own.empty()) return;
    times_[kMtpKind] = {own[0].time.value(), own[0].selective.value(), own[0].full.value()};
  }

  int layers() const { return moves_.job.job.model.layers; }

  bool ended() const {
    return budget_ <= 0 || (moves_.interrupted != nullptr && moves_.interrupted->load());
  }

  // Whether the best plan has the layers and the recomputation that were chosen.
  bool is_the_best() const {
    if (LayersOfChunks(best_.plan, layers()).all() != dealt_) return false;
    for (std::size_t j = 0; j < stages_.size(); ++j) {
      const auto& [dealt, chosen, time, own_layers] = stages_[j];
      const int count = dealt + own_layers;
      Recompute priced = recompute_of(best_.plan, static_cast<int>(j));
      const bool whole = priced.full_layers == 0 || priced.full_layers > count;
      if (priced.mode == RecomputeMode::full && whole) priced.full_layers = count;
      if (count > 0 && priced != chosen) return false;
    }
    return best_.estimate.feasible;
  }

  void lower_worth() {
    if (!moves_.by_step || !best_.estimate.feasible) return;
    worth_ = std::min(worth_, best_.estimate.step_time.value());
  }

  int kind_of(int layer) const {
    const LayerCounts kinds = moves_.job.layers_between(layer, 1);
    return static_cast<int>(std::ranges::find(kinds, 1) - kinds.begin());
  }

  Counts of_stages(const Counts& chunks) const {
    Counts sums(stages_.size());
    for (std::size_t i = 0; i < chunks.size(); ++i) sums[stage_of(i)] += chunks[i];
    return sums;
  }

  std::size_t stage_of(std::size_t chunk) const {
    return to_index(place_of(shape_, 0, static_cast<int>(chunk)).stage);
  }

  // Tries all moves of one layer, of two, or of as many as there are chunks, from stage to stage;
  // false: none makes the plan better.
  bool move_once() {
    const Counts before = of_stages(counts_);
    const int chunks = best_.plan.virtual_stages;
    bool better = false;
    for (const int count : {1, 2}) better = move_some(before, count) || better;
    if (chunks > 2) better = move_some(before, chunks) || better;
    return better;
  }

  bool move_some(const Counts& before, int count) {
    bool better = false;
    for (std::size_t to = 0; to < before.size(); ++to) {
      if (takes_too_long(to, before[to] + count)) continue;
      for (std::size_t from = 0; from < before.size() && !ended(); ++from) {
        if (from == to || before[from] < count) continue;
        Counts moved = before;
        moved[from] -= count;
        moved[to] += count;
        better = take(layers_of_chunks(best_.plan, moved)) || better;
      }
    }
    return better;
  }

  // Tries all moves of one layer, of two, or of all of a chunk's, from chunk to chunk. An even
  // share of a stage's layers is not the best where one of its chunks has the head or longer
  // layers.
  bool move_between_chunks() {
    if (shape_.chunks == 1) return false;
    const Counts before = counts_;
    bool better = false;
    for (std::size_t from = 0; from < before.size(); ++from) {
      for (const int count : {1, 2, before[from]}) {
        better = move_from_chunk(before, from, count) || better;
      }
    }
    return better;
  }

  bool move_from_chunk(const Counts& before, std::size_t from, int count) {
    if (count > before[from]) return false;
    const Counts of_stage = of_stages(before);
    bool better = false;
    for (std::size_t to = 0; to < before.size() && count > 0 && !ended(); ++to) {
      const std::size_t stage = stage_of(to);
      const bool stays = stage == stage_of(from);
      if (from == to || (!stays && takes_too_long(stage, of_stage[stage] + count))) continue;
      Counts moved = before;
      moved[from] -= count;
      moved[to] += count;
      better = take(moved) || better;
    }
    return better;
  }

  // Tries two such moves of one layer each at once, where each alone gains nothing. With more
  // chunks the budget would cover too small a part of all pairs.
  bool move_pairs() {
    constexpr std::size_t kMostChunks = 8;
    if (shape_.chunks == 1 || counts_.size() > kMostChunks) return false;
    const Counts before = counts_;
    bool better = false;
    for (std::size_t from = 0; from < before.size(); ++from) {
      for (std::size_t to = 0; to < before.size(); ++to) {
        if (from == to || before[from] == 0) continue;
        Counts moved = before;
        --moved[from];
        ++moved[to];
        for (std::size_t second = from; second < before.size(); ++second) {
          better = move_from_chunk(moved, second, 1) || better;
        }
      }
    }
    return better;
  }

  bool takes_too_long(std::size_t stage, int count) const {
    const AllocatedStage& own = problem_.stages[stage];
    const double least = own.time.value() + count * least_ * own.slowness;
    return problem_.microbatches * least >= worth_;
  }

  // Whether the best plan with these layers is the best so far. Once is enough.
  bool take(const Counts& counts) {
    if (!tried_.insert(counts).second) return false;
    --budget_;
    deal(counts);
    for (bool again = true; again;) {
      if (!choose() || !price()) return false;
      again = put_out_what_is_too_large();
    }
    return is_best(counts);
  }

  bool is_best(const Counts& counts) {
    if (!moves_.is_better(priced_, best_)) return false;
    std::swap(best_, priced_);
    counts_ = counts;
    lower_worth();
    return true;
  }

  // Takes the first stage's choice of more recomputation that makes the plan better: longer passes
  // hide more of the traffic of parameters.
  bool repeat_more_once() {
    if (!best_.estimate.feasible) return false;
    deal(counts_);
    for (std::size_t j = 0; j < stages_.size(); ++j) {
      for (std::size_t way = 0; way < ways(j).size(); ++way) {
        if (repeats_more(j, way)) return true;
      }
    }
    return false;
  }

  // Whether this choice for a stage makes the plan better than its fastest one.
  bool repeats_more(std::size_t stage, std::size_t way) {
    std::vector<Way>& all = ways(stage);
    if (!choose() || all[way].out || all[way].recompute == stages_[stage].recompute) return false;
    if (problem_.microbatches * all[way].time >= worth_) return false;
    stages_[stage].recompute = all[way].recompute;
    if (!price()) return false;
    const bool better = !put_out_what_is_too_large() && is_best(counts_);
    if (!better) return false;
    for (std::size_t i = 0; i < way; ++i) all[i].out = true;
    return true;
  }

  // What each stage may repeat when the chunks have these layers.
  void deal(const Counts& counts) {
    dealt_ = counts;
    for (StageAllocation& stage : stages_) stage.layers = 0;
    std::vector<LayerCounts> kinds(stages_.size());
    std::vector<Counts> chunks(stages_.size());
    int first = 0;
    for (std::size_t chunk = 0; chunk < counts.size(); ++chunk) {
      const LayerCounts more = moves_.job.layers_between(first, counts[chunk]);
      const std::size_t stage = stage_of(chunk);
      for (std::size_t kind = 0; kind < more.size(); ++kind) kinds[stage][kind] += more[kind];
      stages_[stage].layers += counts[chunk];
      chunks[stage].push_back(counts[chunk]);
      first += counts[chunk];
    }
    for (std::size_t j = 0; j < kinds.size(); ++j) kinds[j][kMtpKind] = stages_[j].own_layers;
    for (std::size_t j = 0; j < kinds.size(); ++j) {
      chosen_[j] = find_ways(j, kinds[j], std::move(chunks[j]));
    }
  }

  std::size_t find_ways(std::size_t stage, const LayerCounts& kinds, Counts chunks) {
    std::vector<StageWays>& known = known_[stage];
    const auto found = std::ranges::find_if(
        known, [&](const StageWays& of) { return of.kinds == kinds && of.chunks == chunks; });
    const auto place = static_cast<std::size_t>(found - known.begin());
    if (found == known.end()) known.push_back({kinds, std::move(chunks), ways_of(stage, kinds)});
    return place;
  }

  std::vector<Way> ways_of(std::size_t stage, const LayerCounts& kinds) const {
    LayerTimes sum;
    int count = 0;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      count += kinds[kind];
      sum.plain += kinds[kind] * times_[kind].plain;
      sum.selective += kinds[kind] * times_[kind].selective;
      sum.full += kinds[kind] * times_[kind].full;
    }
    const AllocatedStage& own = problem_.stages[stage];
    const auto way = [&](Recompute recompute, double more) {
      return Way{recompute, own.time.value() + (sum.plain + more) * own.slowness};
    };
    std::vector<Way> ways;
    if (problem_.none || count == 0) ways.push_back(way({}, 0));
    if (problem_.selective && count > 0) {
      ways.push_back(way({RecomputeMode::selective}, sum.selective));
    }
    for (int n = 1; problem_.full && n <= count; ++n) {
      ways.push_back(way({RecomputeMode::full, n}, sum.full * n / count));
    }
    std::ranges::stable_sort(ways, {}, &Way::time);
    return ways;
  }

  std::vector<Way>& ways(std::size_t stage) { return known_[stage][chosen_[stage]].ways; }

  // Chooses for each stage the fastest recomputation that may fit; false: the plan cannot be
  // better.
  bool choose() {
    double longest = 0;
    for (std::size_t j = 0; j < stages_.size(); ++j) {
      auto way = std::ranges::find(ways(j), false, &Way::out);
      if (way == ways(j).end()) {
        if (best_.estimate.feasible) return false;
        --way;
      }
      stages_[j].recompute = way->recompute;
      longest = std::max(longest, way->time);
    }
    return problem_.microbatches * longest < worth_;
  }

  bool price() {
    if (ended()) return false;
    const Job& j = moves_.job.job;
    auto plan =
        plan_if_legal(request_with(best_.plan, stages_, dealt_), j.model, j.cluster, j.training);
    if (!plan) return false;
    priced_.plan = *std::move(plan);
    moves_.evaluate(priced_.plan, priced_.estimate);
    budget_ -= cost_of(priced_.plan);
    return true;
  }

  // The price of an estimate in units of the budget, about a microsecond each. A schedule without a
  // closed form is played.
  static int cost_of(const Plan& plan) {
    constexpr int kPrice = 5, kPassesPlayed = 60;
    const int passes = plan.schedule->closed_span != nullptr
                           ? 0
                           : 3 * plan.pipeline_parallel * plan.virtual_stages * plan.microbatches;
    return kPrice + passes / kPassesPlayed;
  }

  // Marks the choices of stages that did not fit as priced; whether one of these has another
  // choice.
  bool put_out_what_is_too_large() {
    bool other = false;
    for (std::size_t j = 0; j < stages_.size(); ++j) {
      const Bytes peak = priced_.estimate.stages[j].memory.at_peak.device();
      if (peak <= moves_.job.job.cluster.usable_memory()) continue;
      std::ranges::find(ways(j), stages_[j].recompute, &Way::recompute)->out = true;
      other = other || std::ranges::find(ways(j), false, &Way::out) != ways(j).end();
    }
    return other;
  }

  const LayerMoves& moves_;
  const AllocationProblem& problem_;
  Candidate best_, priced_;
  Counts counts_;  // of the best
  int& budget_;
  PipelineShape shape_;
  double worth_ = std::numeric_limits<double>::infinity();  // what a step has to beat
  std::array<LayerTimes, kLayerKinds> times_;
  double least_ = std::numeric_limits<double>::infinity();  // of all layers
  std::set<Counts> tried_;
  Counts dealt_;  // layers of the chunks of the plan to be priced
  // Its stages; all choices known of each stage, and which of them has its present layers.
  std::vector<StageAllocation> stages_;
  std::vector<std::vector<StageWays>> known_;  // [stage]
  std::vector<std::size_t> chosen_;
};

}  // namespace

Candidate move_layers(const LayerMoves& moves, Candidate start, int& budget) {
  return LocalSearch(moves, std::move(start), budget).run();
}

}  // namespace trainyard
