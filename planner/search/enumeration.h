// Lists the plans of a search space in two levels. The outer level has the degrees, without those
// that cannot be legal (they do not divide the heads, the batch or the experts). The inner level
// has *shapes*, the ways to cut a step into micro-batches and pipeline chunks: they depend on p and
// D only.
//
// Plans that cannot differ appear once: without a pipeline neither schedule nor virtual stages
// matter, over one rank no ZeRO stage does, selective recomputation of the attention core does
// nothing under flash attention, and orders of the ranks may give every group the same links.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "planner/offered.h"
#include "planner/placements.h"
#include "planner/search_space.h"

namespace trainyard {

// A micro-batch with a schedule and its chunks a stage.
struct StepShape {
  int micro_batch = 1;
  int virtual_stages = 1;
  const Schedule* schedule = nullptr;
};

// The shapes of a list that have the same micro-batch: `first` … `last` − 1.
struct ShapeRange {
  int micro_batch = 1;
  std::size_t first = 0, last = 0;
};

// How ZeRO shards the states, and what lies outside the device.
struct Sharding {
  int zero_stage = 0;
  int group = 0;  // ranks of the sharding group; 0: all that hold the same parameters
  Offload offload;
  bool without_recompute = false;  // legal only where nothing is recomputed
  // Index, in the list, of the same sharding with everything on the device; else its own.
  std::size_t on_device = 0;
  // Index of the same sharding over all ranks, where a smaller group saves nothing but traffic;
  // else its own.
  std::size_t over_all = 0;

  bool operator==(const Sharding&) const = default;
};

struct Degrees {
  int tensor = 1;
  int context = 1;
  int pipeline = 1;
  int data = 1;
  int expert = 1;
  int expert_tensor = 1;
  std::size_t shapes = 0;     // index into Enumeration::shapes
  std::size_t shardings = 0;  // index into Enumeration::shardings
  bool sequence_parallel = false;
  ContextAlgorithm algorithm = ContextAlgorithm::ring;
  std::size_t placement = 0;  // index into Enumeration::placements
  std::size_t others = 0;     // index into Enumeration::other_placements
  std::size_t groups = 0;     // index into Enumeration::group_sizes
};

// same_layers: whether the degrees agree in all that decides what a layer costs, apart from the
// micro-batch and where its process groups lie. same_attention: the same of a layer without
// experts.
bool same_attention(const Degrees& a, const Degrees& b);
bool same_layers(const Degrees& a, const Degrees& b);

// The choices of sequence parallelism to search where t > 1: those that the space names, else that
// of `base`, else what the stack can (a network with experts needs it).
std::vector<bool> sequence_choices(const Transformer& model, const Stack& stack,
                                   const SearchSpace& space, const PlanRequest& base);

struct Enumeration {
  Job job;  // whose plans these are
  // Degrees whose tensor and context groups fit an NVLink domain come first. Degrees with the same
  // layers are neighbours, and so are those that differ in their experts only.
  std::vector<Degrees> degrees;
  std::vector<std::vector<StepShape>> shapes;    // one list for every p and D that occurs
  std::vector<std::vector<ShapeRange>> ranges;   // of each list of shapes, ascending
  std::vector<std::vector<Sharding>> shardings;  // one list for all degrees that shard alike
  std::vector<RecomputeChoice> recomputes;
  std::vector<int> zero_stages;           // searched without a pipeline
  std::vector<int> pipeline_zero_stages;  // searched with a pipeline
  bool any_stages = false;                // false: only those the stack offers with the degrees
  Numbers sharding_groups;                // named by the space; empty: all ranks, and `group_sizes`
  std::vector<SearchedOffload> offloads;
  std::vector<bool> sequence_choices;  // where t > 1
  std::vector<Placement> placements;
  // Lists of indices into `placements`: the other placements of some degrees, whose layers cost the
  // same there as under Degrees::placement.
  std::vector<std::vector<std::size_t>> other_placements = {{}};
  // Lists of the sizes of sharding groups, besides all ranks, that some degrees have where the
  // space names none; and the ZeRO stages under which these are searched.
  std::vector<std::vector<int>> group_sizes = {{}};
  std::vector<int> grouped_stages;
  bool groups_only_add = true;  // a smaller sharding group never shortens the optimizer's update
  bool has_experts = false;
  bool sharding_drops_weights = false;  // ZeRO-3 keeps only the optimizer's copy of the weights
  bool complete = true;                 // false: stopped before all degrees were listed

  bool has_states_to_shard(const Degrees& degrees) const;
  // ZeRO stages that the space and the stack have for these degrees.
  using ZeroStages = std::array<bool, 4>;
  ZeroStages offered_stages(const Degrees& degrees) const;
  // The offered stages that differ for these degrees with this offload.
  std::vector<int> zero_stages_of(const Degrees& degrees,
                                  const SearchedOffload& searched = {}) const;
  // All shardings of these degrees, in the order of `offloads`.
  std::vector<Sharding> shardings_of(const Degrees& degrees) const;
  std::size_t number_of_placements(const Degrees& d) const {
    return 1 + other_placements[d.others].size();
  }
  // How many of `recomputes` these degrees can have.
  std::size_t recomputes_of(const Degrees& degrees) const;
  std::int64_t size() const;  // plans of the space

 private:
  void add_shardings(const Degrees& degrees, const SearchedOffload& searched,
                     std::vector<Sharding>& list) const;
  // Sharding groups under this ZeRO stage; 0: all ranks.
  std::vector<int> groups_of(const Degrees& degrees, int stage) const;
};

// The recomputations to search: those that the space names, else none, selective and full where the
// stack can; each once. Selective is left out where it repeats nothing and none is among them.
std::vector<RecomputeChoice> recompute_choices(const SearchSpace& space, const Stack& stack);

// With which degrees ZeRO stages that the space names are searched: those that the stack runs them
// with, or any.
enum class NamedStages { as_run, any };

// `base` gives the keys that the space leaves open. Once `is_over` returns true, listing stops; it
// is asked before each degrees but the first, because degrees can take seconds each on a fabric
// whose routes are followed rank by rank.
Enumeration enumerate(const PreparedJob& job, const SearchSpace& space,
                      const PlanRequest& base = {}, const std::function<bool()>& is_over = {},
                      NamedStages stages = NamedStages::any);

// The dimensions, as documents spell them, in which every value that the space allows is searched.
// sharding_group, collective, offload and rank_order are listed only where the space names values
// or the stack has several; not zero_stage where the stack lacks a stage that the space allows, nor
// sequence_parallel where the stack or the plan leaves one value. `all`: the listing of `space`.
std::vector<std::string> searched_dimensions(const SearchSpace& space, const Enumeration& all);

// All divisors, ascending. Requires: number > 0.
std::vector<int> divisors(std::int64_t number);

}  // namespace trainyard
