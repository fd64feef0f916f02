// The workers of a search. They take the families of degrees in rounds, those that talk the least
// first. In a round they bound the nodes that may still enter the list, then take them in the order
// of their bounds and price the plans of those that still can.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/shared_search.h"

namespace trainyard {

struct SearchCounts {
  std::int64_t considered = 0, pruned_by_memory = 0, pruned_by_time = 0, evaluated = 0;
  Shortfall infeasible;

  SearchCounts& operator+=(const SearchCounts& other);
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
  bool expand_repeated_layers(const Expansion& node, const std::vector<Sharding>& shardings,
                              Plan& plan);
  std::int64_t too_large_so_far() const;
  // `pipeline`: from the first pass to the last, what is known beside the bounds.
  std::optional<PlanBound> leaf_bound(const Expansion& node, const Plan& plan, Seconds pipeline);
  bool can_enter(const Expansion& node, const Plan& plan, Seconds pipeline);
  static bool may_repeat_rather_than_copy(const Expansion& node, Plan& plan);
  // By the stages that are mostly the fullest.
  bool is_too_full(const Expansion& node, const Plan& plan) const;
  void price_any_layers(const Expansion& node, Plan& plan);
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
  std::vector<bool> too_large_;  // by sharding, of a shape: with nothing recomputed
  // By sharding: what the pipeline takes of the plan that has all on the device; 0: not priced.
  std::vector<Seconds> pipelines_;
  PlanRequest request_;
  Estimate estimate_;
  std::int64_t since_clock_ = 0;
  std::int64_t since_report_ = 0;
};

}  // namespace trainyard
