// The workers of a search and what they share. They take the families of degrees in rounds, those
// that talk the least first. In a round they bound the nodes that may still enter the list, then
// take them in the order of their bounds and price the plans of those that still can.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

#include "planner/node.h"
#include "planner/planner.h"
#include "planner/ranking.h"

namespace trainyard {

// What the list is of: the best plans that fit, or those that miss the memory by the least.
enum class Aim { best, closest };

struct SearchCounts {
  std::int64_t considered = 0, pruned_by_memory = 0, pruned_by_time = 0, evaluated = 0;
  Shortfall infeasible;

  SearchCounts& operator+=(const SearchCounts& other);
};

class SharedSearch {
 public:
  using Clock = std::chrono::steady_clock;

  SharedSearch(const PreparedJob& job, const SearchOptions& options, const Evaluator& evaluate,
               const Enumeration& space, Aim aim);

  // Whether a plan of this value could enter the list.
  bool has_room_for(const Values& values);
  void offer(const Values& values, const Plan& plan, const Estimate& estimate);
  std::vector<Candidate> candidates() const;

  // Degrees with the same layers, the most promising family first.
  struct Family {
    std::size_t first, last;  // of the degrees: `first` … `last` − 1
    // Of its first degrees with the smallest micro-batch; when the search stops, of all its nodes.
    Seconds floor;
    bool bounded = false;  // its nodes are known; set by the worker that took it
  };
  // The next round: false when there is none.
  bool start_round();

  // Looks at the clock and at the caller's flag. Bounding ends in time for some plans to be priced;
  // a search that found nothing so far may take twice its time.
  bool bounding_is_over();
  bool pricing_is_over();
  bool stopped() const { return not_all_bounded_ || not_all_priced_; }

  void add_nodes(const std::vector<SearchNode>& nodes);
  // Between the two halves of a round, on one thread.
  void start_pricing();
  // After a search that stopped and found something: whether to bound the families that are open.
  bool start_open_families();
  bool open_families_are_over();
  // A plan of an open family may have this value, of the first objective; 0: any.
  void lower_open_families(double value);
  double open_families() const { return open_families_.load(std::memory_order_relaxed); }
  // The smallest bound among the plans that were not looked at.
  double open_bound() const;

  const PreparedJob& job;
  const SearchOptions& options;
  const Evaluator& evaluate;
  const Estimator estimator;  // for bounds
  const Enumeration& space;
  const Aim aim;
  const ParameterShares shares;
  // Whether full recomputation of some layers of each stage is searched as well: of as few as fit.
  const bool repeats_some_layers;
  const std::int64_t space_size;
  std::vector<Family> families;
  std::size_t families_of_round = 0;  // those before are of this round or of one before
  std::vector<SearchNode> nodes;      // of this round
  std::atomic<std::size_t> next_family = 0, next_node = 0;
  std::atomic<std::int64_t> considered = 0;  // for progress
  std::atomic<std::size_t> first_open;       // node; as many as there are nodes: none
  std::atomic<std::size_t> next_open_family = 0;

 private:
  bool interrupted() const;
  void order_families();
  void set_floors_of_open_families();
  Seconds least_floor(NodeFloors& floors, const Degrees& degrees) const;

  std::size_t families_of_previous_round_ = 0;
  bool wants_front() const { return options.second && aim == Aim::best; }

  Ranking ranking_;
  ParetoFront front_;
  std::mutex mutex_;
  std::atomic<double> cutoff_;
  std::atomic<bool> any_ = false;  // whether the list has a plan
  std::atomic<bool> not_all_bounded_ = false, not_all_priced_ = false;
  std::atomic<double> open_families_ = 0;
  Clock::time_point deadline_, last_deadline_;          // once a plan is found; whatever was found
  Clock::time_point grace_ = Clock::time_point::min();  // until when an interrupted search goes on
  Clock::time_point end_of_open_families_;
};

class Worker {
 public:
  Worker(SharedSearch& shared, bool reports);

  void bound_nodes();
  void expand_nodes();
  void bound_open_families();

  SearchCounts counts;

 private:
  void bound_degrees(std::size_t index);
  void bound_open_degrees(const Degrees& degrees);
  bool floor_is_too_high(const ShapeRange& range);
  bool expand(const SearchNode& node);
  struct Expansion {
    const Degrees& degrees;
    PassSums sums;
    StageBounds& stages;
  };
  bool take_named_layers(const Degrees& degrees, const ShapeRange& shape, Plan& plan) const;
  bool expand_shape(const Expansion& node, Plan& plan);
  bool expand_shardings(const Expansion& node, const std::vector<Sharding>& shardings, Plan& plan);
  bool expand_repeated_layers(const Expansion& node, Plan& plan, std::int64_t shardings);
  std::int64_t too_large_so_far() const;
  // `pipeline`: from the first pass to the last, what is known beside the bounds.
  std::optional<PlanBound> leaf_bound(const Expansion& node, const Plan& plan, Seconds pipeline);
  bool can_enter(const Expansion& node, const Plan& plan, Seconds pipeline);
  void price_fewest_layers(const Expansion& node, Plan& plan);
  bool is_promising(const Plan& plan);
  void price();
  void judge(const Plan& plan);
  // Counts; whether it was time to look at the clock.
  bool count(std::int64_t combinations);
  std::int64_t plans_of(const Degrees& degrees, const ShapeRange& range) const;
  Values value_of(const PlanBound& bound) const;
  Values value_of(const Plan& plan, const Estimate& estimate) const;
  bool too_large(const PlanBound& bound) const;

  SharedSearch& shared_;
  bool reports_;
  NodeFloors floors_;
  NodeBounds bounds_;
  std::vector<SearchNode> found_;
  std::vector<Sharding> too_large_;  // of a shape, with nothing recomputed
  // By sharding: what the pipeline takes of the plan that has all on the device; 0: not priced.
  std::vector<Seconds> pipelines_;
  PlanRequest request_;
  Bytes capacity_;
  Estimate estimate_;
  std::int64_t since_clock_ = 0;
  std::int64_t since_report_ = 0;
};

}  // namespace trainyard
