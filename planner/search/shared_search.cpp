#include "planner/search/shared_search.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "model/cost/memory/offload.h"

namespace trainyard {
namespace {

using Clock = SharedSearch::Clock;

// Time to price the most promising degrees, when a search is interrupted before it found a plan.
constexpr auto kGrace = std::chrono::seconds(1);
// Time for what follows a stopped search: this share of its time limit, within these ends.
constexpr double kOpenShare = 0.25;
constexpr Seconds kOpenLeast(0.2), kOpenMost(2);

Clock::time_point deadline_of(Seconds limit) {
  constexpr Seconds kUnreachable(1e9);  // beyond, the clock's own range would be left
  if (limit <= Seconds(0) || limit >= kUnreachable) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit.value()));
}

std::vector<SharedSearch::Family> families_of(const std::vector<Degrees>& degrees) {
  std::vector<SharedSearch::Family> families;
  for (std::size_t i = 0; i < degrees.size(); ++i) {
    if (i == 0 || !same_layers(degrees[i - 1], degrees[i])) families.push_back({i, i, Seconds(0)});
    families.back().last = i + 1;
  }
  return families;
}

// Recomputing some layers lies between recomputing none and all, in time and in memory. Where only
// memory counts, all layers are the best choice.
bool some_layers_may_help(const Stack& stack, const SearchOptions& options, Aim aim) {
  const bool by_memory = options.objective == Objective::memory && !options.second;
  return aim == Aim::best && !by_memory && options.space.recompute.empty() &&
         stack.partial_recompute != PartialRecompute::none;
}

// On a front with memory every number of recomputed layers counts: each trades time for memory.
bool trades_memory(const SearchOptions& options) {
  return options.second &&
         (options.objective == Objective::memory || options.second == Objective::memory);
}

// Offload makes passes longer, and moves the optimizer's update to the hosts: where that is no
// faster than on the device, the step takes longer. This holds for time and cost only: the energy
// may be less, because that of the hosts is not counted.
bool only_cost(const PreparedJob& job, const SearchOptions& options, Aim aim) {
  const bool by_time =
      options.objective == Objective::step_time || options.objective == Objective::cost;
  const Device& device = job.job.cluster.device;
  return aim == Aim::best && by_time && !options.second && !options.valuation.robust &&
         update_bandwidth(job.job.cluster, OffloadTarget::host) <=
             device.memory_bandwidth * device.rates.memory;
}

std::int64_t size_of(const Enumeration& space, bool repeats_some_layers) {
  const std::int64_t all = space.size();
  return repeats_some_layers ? all + all / static_cast<std::int64_t>(space.recomputes.size()) : all;
}

}  // namespace

SharedSearch::SharedSearch(const PreparedJob& prepared, const SearchOptions& asked,
                           const Evaluator& evaluator, const Enumeration& all, Aim what)
    : job(prepared),
      options(asked),
      evaluate(evaluator),
      estimator(prepared),
      space(all),
      aim(what),
      shares(parameter_shares(prepared)),
      repeats_some_layers(some_layers_may_help(prepared.job.training.stack, asked, what)),
      repeats_any_layers(trades_memory(asked)),
      copies_only_cost(only_cost(prepared, asked, what)),
      space_size(size_of(all, repeats_some_layers)),
      families(families_of(all.degrees)),
      first_open(std::numeric_limits<std::size_t>::max()),
      ranking_(asked.top, asked.space.sharding_group.empty()),
      cutoff_(what == Aim::best ? asked.worth : std::numeric_limits<double>::infinity()),
      deadline_(deadline_of(asked.time_limit)),
      last_deadline_(deadline_of(2 * asked.time_limit)) {
  order_families();
}

void SharedSearch::order_families() {
  NodeFloors floors(estimator, job, space, options.base);
  const Clock::time_point end = Clock::now() + (deadline_ - Clock::now()) / 4;
  const Family* before = nullptr;
  for (Family& family : families) {
    const Degrees& degrees = space.degrees[family.first];
    if (interrupted() || Clock::now() >= end) {
      family.floor = Seconds(std::numeric_limits<double>::infinity());
      continue;  // after those whose floor is known
    }
    if (before != nullptr && same_attention(space.degrees[before->first], degrees)) {
      family.floor = before->floor;
    } else {
      floors.start(degrees);
      family.floor = floors.legal() ? floors.without_experts(space.ranges[degrees.shapes].front())
                                    : Seconds(std::numeric_limits<double>::infinity());
    }
    before = &family;
  }
  // Experts on many ranks first: those are the plans that fit.
  const auto spread = [this](const Family& family) {
    const Degrees& degrees = space.degrees[family.first];
    return degrees.expert * degrees.expert_tensor;
  };
  std::stable_sort(families.begin(), families.end(), [&](const Family& a, const Family& b) {
    return a.floor != b.floor ? a.floor < b.floor : spread(a) > spread(b);
  });
}

// Rounds double: the plans that the first ones find let bounds prune most of the last ones.
bool SharedSearch::start_round() {
  if (families_of_round == families.size() || stopped()) return false;
  constexpr std::size_t kFirst = 64;
  families_of_round = std::min(families.size(), std::max(kFirst, 2 * families_of_round));
  next_family = families_of_previous_round_;
  nodes.clear();
  next_node = 0;
  end_of_bounding_ = Clock::now() + (bounding_deadline() - Clock::now()) / 2;
  return true;
}

bool SharedSearch::round_is_long() const { return !any_ && Clock::now() >= end_of_bounding_; }

bool SharedSearch::has_room_for(const Values& values) {
  if (values.first > cutoff_.load(std::memory_order_relaxed)) return false;
  if (!wants_front()) return true;
  const std::scoped_lock lock(mutex_);
  return front_.has_room_for(values);
}

void SharedSearch::offer(const Values& values, const Plan& plan, const Estimate& estimate) {
  if (!has_room_for(values)) return;
  const std::scoped_lock lock(mutex_);
  any_ = true;
  if (wants_front()) {
    front_.offer(values, plan, estimate);
  } else {
    ranking_.offer(values.first, plan, estimate);
    cutoff_ = std::min(cutoff_.load(), ranking_.cutoff());
  }
}

std::vector<Candidate> SharedSearch::candidates() const {
  if (wants_front()) return front_.candidates();
  std::vector<Candidate> result;
  result.reserve(ranking_.entries().size());
  for (const RankedCandidate& entry : ranking_.entries()) result.push_back(entry.candidate);
  return result;
}

bool SharedSearch::interrupted() const {
  return options.interrupted != nullptr && options.interrupted->load();
}

bool SharedSearch::bounding_is_over() {
  if (interrupted() || Clock::now() >= bounding_deadline()) not_all_bounded_ = true;
  return not_all_bounded_;
}

Clock::time_point SharedSearch::bounding_deadline() const {
  return any_ ? deadline_ : deadline_ + (last_deadline_ - deadline_) / 2;
}

bool SharedSearch::pricing_is_over() {
  const bool found = any_;
  const auto now = Clock::now();
  const bool stop = interrupted() && (found || now >= grace_);
  if (stop || now >= (found ? deadline_ : last_deadline_)) not_all_priced_ = true;
  return not_all_priced_;
}

void SharedSearch::add_nodes(const std::vector<SearchNode>& more) {
  const std::scoped_lock lock(mutex_);
  nodes.insert(nodes.end(), more.begin(), more.end());
}

void SharedSearch::start_pricing() {
  if (interrupted()) grace_ = Clock::now() + kGrace;
  families_of_round = std::min(families_of_round, next_family.load());
  families_of_previous_round_ = families_of_round;
  const auto key = [](const SearchNode& n) {
    return std::tuple(n.bound.first, n.degrees, n.range);
  };
  std::sort(nodes.begin(), nodes.end(),
            [&](const SearchNode& a, const SearchNode& b) { return key(a) < key(b); });
}

void SharedSearch::start_closing() {
  const Seconds time = std::clamp(options.time_limit * kOpenShare, kOpenLeast, kOpenMost);
  end_of_closing_ = deadline_of(time);
}

bool SharedSearch::start_open_families() {
  open_families_ = cutoff_.load();
  if (!stopped() || !any_ || aim != Aim::best) return false;
  std::erase_if(families, [](const Family& family) { return family.bounded; });
  set_floors_of_open_families();
  return true;
}

// Sets the floor of each open family to the least of all nodes with the same attention, and sorts
// the families by it. What a stage communicates, apart from its experts, depends on its attention,
// the micro-batch, p and D only.
void SharedSearch::set_floors_of_open_families() {
  std::sort(families.begin(), families.end(),
            [](const Family& a, const Family& b) { return a.first < b.first; });
  NodeFloors floors(estimator, job, space, options.base);
  std::vector<bool> seen;  // shapes
  std::size_t group = 0;   // the first family with this attention
  for (std::size_t i = 0; i < families.size(); ++i) {
    const Degrees& first = space.degrees[families[i].first];
    if (i == 0 || !same_attention(space.degrees[families[i - 1].first], first)) {
      group = i;
      families[i].floor = Seconds(std::numeric_limits<double>::infinity());
      seen.assign(space.shapes.size(), false);
    }
    families[group].floor = std::min(families[group].floor, least_floor(floors, families[i], seen));
  }
  for (std::size_t i = 1; i < families.size(); ++i) {
    const Degrees& before = space.degrees[families[i - 1].first];
    if (same_attention(before, space.degrees[families[i].first])) {
      families[i].floor = families[i - 1].floor;
    }
  }
  std::stable_sort(families.begin(), families.end(),
                   [](const Family& a, const Family& b) { return a.floor < b.floor; });
}

// The least floor over the family's shapes that were not `seen` yet; 0 where time is over.
Seconds SharedSearch::least_floor(NodeFloors& floors, const Family& family,
                                  std::vector<bool>& seen) const {
  Seconds least(std::numeric_limits<double>::infinity());
  for (std::size_t d = family.first; d < family.last; ++d) {
    const Degrees& degrees = space.degrees[d];
    if (seen[degrees.shapes]) continue;
    if (closing_is_over()) return Seconds(0);
    floors.start(degrees);
    if (!floors.legal()) continue;
    seen[degrees.shapes] = true;
    for (const ShapeRange& range : space.ranges[degrees.shapes]) {
      least = std::min(least, floors.without_experts(range));
    }
  }
  return least;
}

bool SharedSearch::closing_is_over() const { return Clock::now() >= end_of_closing_; }

void SharedSearch::lower_open_families(double value) {
  double least = open_families_;
  while (value < least && !open_families_.compare_exchange_weak(least, value)) {
  }
}

double SharedSearch::open_bound() const {
  double bound = space.complete ? open_families_.load() : 0;
  if (first_open < nodes.size()) bound = std::min(bound, nodes[first_open].bound.first);
  const double computed = std::min(1.0, options.base.capacity_factor.value_or(1));
  return std::max(bound, objective_bound(job, shares, options.objective, space.offloads, computed));
}

}  // namespace trainyard
