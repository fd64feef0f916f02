// The workers of a search, one a thread. They take the families of degrees in rounds, those with
// the least communication first. In a round they bound the nodes, keep those that may still enter
// the list, then expand these in the order of their bounds: of each they price the plans that their
// own bounds do not leave out.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/bound/traffic_floor.h"
#include "planner/search/shared_search.h"

namespace trainyard {

struct SearchCounts {
  std::int64_t considered = 0, pruned_by_memory = 0, pruned_by_objective = 0, evaluated = 0;
  std::int64_t illegal = 0;
  Shortfall infeasible;

  SearchCounts& operator+=(const SearchCounts& other);
};

// Aligned to cache lines: workers lie side by side and count all the time (no false sharing).
class alignas(64) Worker {
 public:
  Worker(SharedSearch& shared, bool reports);

  void bound_nodes();
  void expand_nodes();
  void bound_open_families();

  SearchCounts counts;
  std::vector<SearchNode> expanded;  // nodes with a pipeline, for SearchResult::to_deal

 private:
  // What is known of the plans of one shape, sharding and recomputation under every placement.
  // open: nothing. too_slow, too_large: they cannot be listed. held_up: traffic of parameters makes
  // them too slow, of which a smaller sharding group may have less. settled: those worth a price
  // were priced.
  enum class Fate { open, too_slow, held_up, too_large, settled };
  // What is known of a shape's plans with one sharding.
  struct Known {
    bool too_large = false;  // with nothing recomputed
    bool settled = false;    // with nothing recomputed: priced and fit, or too slow
    int settled_layers = 0;  // settled too with so many layers recomputed, or more
    // Of the recomputation being expanded; `pipeline`: as priced, 0 if it was not.
    Fate fate = Fate::open;
    Seconds pipeline;
  };

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
  bool passes_are_too_slow(const Expansion& node, const Plan& plan);
  bool leave_out_shardings(const std::vector<Sharding>& shardings, const Plan& plan);
  bool expand_shardings(const Expansion& node, const std::vector<Sharding>& shardings, Plan& plan);
  void expand_sharding(const Expansion& node, const std::vector<Sharding>& shardings,
                       std::size_t index, const Plan& plan);
  bool expand_repeated_layers(const Expansion& node, const std::vector<Sharding>& shardings,
                              Plan& plan);
  void expand_repeated_sharding(const Expansion& node, const Sharding& sharding, std::size_t index,
                                Plan& plan);
  // `pipeline`: a lower bound from the first pass to the last, known from plans that were priced.
  std::optional<PlanBound> leaf_bound(const Expansion& node, const Plan& plan, Seconds pipeline);
  void add_memory(const MemoryUse& use, PlanBound& bound) const;
  Seconds computing_of(const Expansion& node, const Plan& plan) const;
  // Whether traffic of parameters alone makes the plan too slow.
  bool is_held_up(const Expansion& node, const Plan& plan);
  Fate fate_by_bounds(const Expansion& node, const Plan& plan, Seconds pipeline);
  Fate fate_over_all(const Sharding& sharding, std::size_t index) const;
  Seconds known_pipeline(const Sharding& sharding) const;
  static bool may_repeat_rather_than_copy(const Expansion& node, Plan& plan);
  // Numbers of layers that are recomputed in full: `first` … `end` − 1.
  struct LayerRange {
    int first, end;
  };
  bool has_room_for_any(const Expansion& node, LayerRange range, Plan& plan);
  // Prices every number of the range that may be on a front with memory; whether any was priced.
  bool price_any_of(const Expansion& node, LayerRange range, Plan& plan);
  int layers_step(const Plan& plan) const;
  bool price_layers(int layers);  // the same of one number, under every placement
  void price_every_number(const Expansion& node, int end, Plan& plan);
  LayerRange worthwhile(const Expansion& node, const PlanBound& bound, int end, Plan& plan);
  // Numbers of layers that fit and may enter the list, each with the values of its bound, which
  // come in ascending order.
  using BoundedLayers = std::vector<std::pair<Values, int>>;
  BoundedLayers bounded_layers(const Expansion& node, int end, Plan& plan);
  // Prices the best number of layers below `end` under every placement.
  void price_any_layers(const Expansion& node, int end, Plan& plan);
  void price_best_of(const BoundedLayers& bounded, Plan& plan);
  // Prices this number of layers: whether it fits; nothing where it is not legal.
  std::optional<bool> price_these_layers(int layers);
  // Prices the fewest layers that fit. Returns their number, or the number from which on plans are
  // too slow; `end`: none fits.
  int price_fewest_layers(const Expansion& node, int end, Plan& plan);
  static int fewest_that_fit(const Expansion& node, int end, Plan& plan);
  bool is_promising(const Plan& plan);
  Fate price();
  Fate judge(const Plan& plan);
  // Price, or count as pruned, the plan under every placement of the node.
  void price_placements(Known& known);
  void leave_out(Fate fate);
  // Adds to the counts; true where it is time to look at the clock.
  bool count(std::int64_t combinations);
  std::int64_t plans_of(const Degrees& degrees, const ShapeRange& range) const;
  Values value_of(const PlanBound& bound) const;
  Values value_of(const Plan& plan, const Estimate& estimate) const;
  bool too_large(const PlanBound& bound) const;

  SharedSearch& shared_;
  bool reports_;
  NodeFloors floors_;
  NodeBounds bounds_;
  TrafficFloors traffic_;  // of the node
  std::vector<SearchNode> found_;
  // Whether a plan of this sharding is never better than the same with everything on the device;
  // and whether, besides, that plan is settled.
  bool only_adds_copies(const Sharding& sharding, std::size_t index) const;
  bool is_settled(const Sharding& sharding, std::size_t index) const;
  std::vector<Known> known_;             // by sharding
  std::vector<std::size_t> placements_;  // of the node
  PlanRequest request_;
  Estimate estimate_;
  std::int64_t since_clock_ = 0;
  std::int64_t since_report_ = 0;
};

}  // namespace trainyard
