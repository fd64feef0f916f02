// What the workers of a search share: the families of degrees and the rounds in which they are
// taken, the nodes of a round, the list of the best plans, and when to stop. After a stop, a bound
// of what was not looked at.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "planner/planner.h"
#include "planner/search/node.h"
#include "planner/search/ranking.h"

namespace trainyard {

// What the list is of: the best plans that fit, or those that miss the memory by the least.
enum class Aim { best, closest };

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
  // Nothing was found so far, and half of what was left went into bounding: what is bounded is to
  // be priced.
  bool round_is_long() const;
  bool pricing_is_over();
  bool stopped() const { return not_all_bounded_ || not_all_priced_; }

  void add_nodes(const std::vector<SearchNode>& nodes);
  // Between the two halves of a round, on one thread.
  void start_pricing();
  // What follows a search that stopped has a little time.
  void start_closing();
  bool closing_is_over() const;
  // If it found something: whether to bound the families that are open.
  bool start_open_families();
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
  // Whether full recomputation of some layers of each stage is searched as well: of as few as fit,
  // or of every number.
  const bool repeats_some_layers, repeats_any_layers;
  // Whether copies to the hosts can only make a plan worse, under ZeRO stages 0 and 1.
  const bool copies_only_cost;
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
  Clock::time_point bounding_deadline() const;
  void order_families();
  void set_floors_of_open_families();
  Seconds least_floor(NodeFloors& floors, const Family& family, std::vector<bool>& seen) const;

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
  Clock::time_point end_of_bounding_, end_of_closing_;
};

}  // namespace trainyard
