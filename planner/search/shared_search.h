// What the workers of a search share: the families of degrees (those with the same layers), the
// nodes of a round, the list of the best plans, and the clock. A round takes as many families as
// all before it (64 at first), bounds their nodes, then prices plans of the nodes in the order of
// their bounds. After an early stop there is a bound of what was not looked at.
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

// What the list collects: the best plans that fit, or those that miss the memory by the least.
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
    // Exchange floor without experts: of its first degrees with the smallest micro-batch; once the
    // search has stopped, the least of all nodes with the same attention.
    Seconds floor;
    bool bounded = false;  // its nodes are known; set by the worker that took it
  };
  // Begins the next round; false where none is left or the search has stopped.
  bool start_round();

  // Whether the clock or the caller's flag ends bounding. A search that has found nothing yet may
  // take twice its time; bounding then ends early enough for some plans to be priced.
  bool bounding_is_over();
  // Whether bounding this round took half of the time left and nothing is found yet: then the nodes
  // that are bounded so far are priced.
  bool round_is_long() const;
  bool pricing_is_over();
  bool stopped() const { return not_all_bounded_ || not_all_priced_; }

  void add_nodes(const std::vector<SearchNode>& nodes);
  // Ends bounding and sorts the round's nodes by their bounds. Requires: called on one thread.
  void start_pricing();
  // Sets the short time that a stopped search has for baselines and bounds of open families.
  void start_closing();
  bool closing_is_over() const;
  // Whether to bound the families that were not reached: the search stopped and found something.
  bool start_open_families();
  // Lowers the least value of the first objective that a plan of an open family may have; 0: any.
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
  // Whether full recomputation of only some layers of each stage is searched as well: of as few as
  // fit; and of every number.
  const bool repeats_some_layers, repeats_any_layers;
  // Whether copies to the hosts can only make a plan worse, under ZeRO stages 0 and 1.
  const bool copies_only_cost;
  const std::int64_t space_size;
  std::vector<Family> families;
  std::size_t families_of_round = 0;  // one past the last family of this round
  std::vector<SearchNode> nodes;      // of this round
  std::atomic<std::size_t> next_family = 0, next_node = 0;
  std::atomic<std::int64_t> considered = 0;  // for progress
  std::atomic<std::size_t> first_open;       // first node not expanded; none: past the last
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
  Clock::time_point deadline_, last_deadline_;          // if a plan is found; if none is
  Clock::time_point grace_ = Clock::time_point::min();  // until when an interrupted search goes on
  Clock::time_point end_of_bounding_, end_of_closing_;
};

}  // namespace trainyard
