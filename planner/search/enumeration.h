// The space of a search, laid out for speed: degrees in the outer loops with everything that cannot
// be legal left out (indivisible heads, batches, experts), and inside them *shapes*, the ways to
// cut a step into micro-batches and pipeline chunks, which depend on p and D only.
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

struct StepShape {
  int micro_batch = 1;
  int virtual_stages = 1;
  const Schedule* schedule = nullptr;
};

// Shapes of one micro-batch: `first` … `last` − 1 of a list.
struct ShapeRange {
  int micro_batch = 1;
  std::size_t first = 0, last = 0;
};

// How ZeRO shards the states: the stage, and the ranks of a group (0: all that hold the same). And
// what of them lies outside the device.
struct Sharding {
  int zero_stage = 0;
  int group = 0;
  Offload offload;
  bool without_recompute = false;  // nothing is recomputed beside it
  // Place, in a list, of the same with all on the device; its own where that is not in the list.
  std::size_t on_device = 0;
  // Of the same over all ranks, where a smaller group can only spare traffic; else its own.
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

// Everything that decides what a layer costs, but for the micro-batch and where its groups lie; and
// the same of all but its experts.
bool same_attention(const Degrees& a, const Degrees& b);
bool same_layers(const Degrees& a, const Degrees& b);

// Those of degrees with tensor parallelism: of the space, else as in `base`, else what the stack
// can (a network with experts needs it).
std::vector<bool> sequence_choices(const Transformer& model, const Stack& stack,
                                   const SearchSpace& space, const PlanRequest& base);

struct Enumeration {
  Job job;  // whose plans these are
  // Those inside an NVLink domain first; those whose layers cost the same stand together, and so do
  // those that differ in their experts only.
  std::vector<Degrees> degrees;
  std::vector<std::vector<StepShape>> shapes;    // one list for every p and D that occurs
  std::vector<std::vector<ShapeRange>> ranges;   // of each of these lists, ascending
  std::vector<std::vector<Sharding>> shardings;  // one list for all degrees that shard alike
  std::vector<RecomputeChoice> recomputes;
  std::vector<int> zero_stages;
  std::vector<int> pipeline_zero_stages;  // of these under a pipeline
  bool any_stages = false;                // else those that the stack offers for the degrees
  Numbers sharding_groups;                // empty: all ranks, and `group_sizes`
  std::vector<SearchedOffload> offloads;
  std::vector<bool> sequence_choices;  // of degrees with tensor parallelism
  std::vector<Placement> placements;
  // Lists of placements under which the layers of some degrees cost what they cost under the first.
  std::vector<std::vector<std::size_t>> other_placements = {{}};
  // Lists of the sizes that groups of some degrees have besides all ranks, where the space names
  // none; and the ZeRO stages under which they are searched.
  std::vector<std::vector<int>> group_sizes = {{}};
  std::vector<int> grouped_stages;
  bool groups_only_add = true;  // a smaller group makes no update shorter
  bool has_experts = false;
  bool sharding_drops_weights = false;  // ZeRO-3 keeps the optimizer's copy alone
  bool complete = true;                 // else it was over before all degrees were listed

  bool has_states_to_shard(const Degrees& degrees) const;
  // ZeRO stages that the space and the stack have for these degrees.
  using ZeroStages = std::array<bool, 4>;
  ZeroStages offered_stages(const Degrees& degrees) const;
  // ZeRO stages that differ for these degrees, with this outside the devices.
  std::vector<int> zero_stages_of(const Degrees& degrees,
                                  const SearchedOffload& searched = {}) const;
  // Those of any degrees, in the order of `offloads`.
  std::vector<Sharding> shardings_of(const Degrees& degrees) const;
  std::size_t number_of_placements(const Degrees& d) const {
    return 1 + other_placements[d.others].size();
  }
  // How many of `recomputes` these degrees can have.
  std::size_t recomputes_of(const Degrees& degrees) const;
  std::int64_t size() const;

 private:
  void add_shardings(const Degrees& degrees, const SearchedOffload& searched,
                     std::vector<Sharding>& list) const;
  // Of one stage; 0: all ranks.
  std::vector<int> groups_of(const Degrees& degrees, int stage) const;
};

// Those of the space, else none, selective and full, each once: without selective recomputation
// where that repeats nothing and none is among them.
std::vector<RecomputeChoice> recompute_choices(const SearchSpace& space, const Stack& stack);

// ZeRO stages that the space names: under the degrees that the stack runs them with, or any.
enum class NamedStages { as_run, any };

// `base` has the keys that the space says nothing about. `is_over`: asked before each degrees but
// the first, for where ways through the fabric are followed rank by rank each takes seconds.
Enumeration enumerate(const PreparedJob& job, const SearchSpace& space,
                      const PlanRequest& base = {}, const std::function<bool()>& is_over = {},
                      NamedStages stages = NamedStages::any);

// The dimensions of which every value is searched that the space allows, as documents spell them.
// Of those with one value unless the space names more, only where it does or the stack has more;
// no ZeRO stage where the stack cannot run one that the space allows, no sequence parallelism where
// the stack or the plan leaves one value. `all`: of this space.
std::vector<std::string> searched_dimensions(const SearchSpace& space, const Enumeration& all);

// All divisors, ascending. Requires: number > 0.
std::vector<int> divisors(std::int64_t number);

}  // namespace trainyard
