// Plans for a cluster of groups of unlike nodes (device generations). Four ways to use it: a
// pipeline through several groups, each with stages of its own and as many layers as suit its
// devices and their memory (planner/heterogeneous/pipeline.h); replicas of the whole network on
// several, with micro-batches in the proportion of their speed (planner/heterogeneous/replicas.h);
// several together as one cluster of their slowest (planner/heterogeneous/together.h); or one group
// alone. The first three through any of the groups, so that one that only delays is left out.
//
// Assumes: a stage costs what it costs in a cluster made of its group's nodes alone; sends between
// stages of two groups and the gradients of unlike replicas cross the boundary, all devices of the
// narrower side at once; the schedule is 1F1B (together: any). Nodes of all groups have as many
// devices.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cost/estimate.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"
#include "planner/objective.h"
#include "planner/search_space.h"

namespace trainyard {

constexpr std::size_t kMostGroups = 4;  // 60 orders of two or more of them

struct UnlikeCluster {
  std::vector<Cluster> groups;  // 2 … kMostGroups
  // Of a device to another group, each direction; absent: its part of the NICs of the narrower one.
  std::optional<BytesPerSecond> boundary;
  std::optional<Seconds> boundary_latency;  // absent: the longer one of the two fabrics
};

// What the NICs of a group give each of its devices.
BytesPerSecond nics_of_a_device(const Cluster& group);

// Between two groups of a cluster.
struct Boundary {
  BytesPerSecond bandwidth;
  Seconds latency;
};
Boundary boundary_between(const UnlikeCluster& cluster, std::size_t a, std::size_t b);

struct GroupedJob {
  Transformer model;
  Training training;
  UnlikeCluster cluster;
};

struct GroupShare {
  int stages = 0;             // of the pipeline, or of a replica; 0: the group stands idle
  int layers = 0;             // of all its stages, or of a replica
  int replicas = 0;           // of what it holds
  int microbatches = 0;       // of a replica
  RecomputeChoice recompute;  // of the stages of a replica; of a pipeline it stands in the plan
  Bytes peak_memory;          // of its fullest device
  int fullest_stage = 0;      // of the whole pipeline, or of a replica, the one with that device
  Seconds busy;               // what a device of it computes of a step
  Seconds kernels;            // of a step, on the stage of it that has most of them
};

enum class GroupUse { pipeline, replicas, together, alone };

struct GroupedPlan {
  GroupUse use = GroupUse::alone;
  std::vector<std::size_t> order;  // the groups at work; of a pipeline in the order of its stages
  Plan plan;  // degrees; of a pipeline with the layers and recomputation of its stages
  std::vector<GroupShare> shares;  // of every group of the cluster
  Seconds step_time;
  // 10–90 %: as wide as that of the group at work whose devices are known the least.
  Seconds step_time_low, step_time_high;
  Seconds boundary;  // of the step, what crosses between groups and shows
  // The step by its parts: of a pipeline those of the stage with the most to do (what crosses shows
  // as pipeline communication), of replicas those of the group that ends last (there it is
  // data-parallel communication).
  Breakdown breakdown;
  bool feasible = false;
  // Of the groups at work, for the others are free for something else. Unknown where one of their
  // devices has no price (no power).
  std::optional<Dollars> cost_per_step;
  std::optional<Joules> energy_per_step;
  // The share of its own memory that the fullest device of all groups at work takes. Replicas have
  // the same degrees on every group, so that it is one of the group with the least memory, unless
  // that one repeats more; where memory is minimised, each group repeats what takes it the least.
  double fullness = 0;
  std::optional<double> goodput;  // where that is the objective
  double value = 0;               // by the objective: see GroupSearchOptions
  double second_value = 0;        // by the second one, where there is one
};

// A way that the space leaves nothing of.
struct LeftOutWay {
  GroupUse use = GroupUse::alone;
  std::optional<std::size_t> group;  // where it is one alone
  // The key that does; empty: no single one.
  std::string_view key;
  std::string_view value;  // the only one that the way has; empty: it has others
};

struct GroupedPlans {
  Objective objective = Objective::step_time;  // by which the plans are ordered
  std::optional<Objective> second;
  // Of two objectives: the plans that none of those that were priced beats in both, and the best of
  // each way stay empty.
  std::vector<GroupedPlan> front;
  std::optional<GroupedPlan> pipeline;       // the best of each way that fits
  std::optional<GroupedPlan> even_pipeline;  // of its degrees, with even layers and one
                                             // recomputation
  std::optional<GroupedPlan> replicas;
  std::optional<GroupedPlan> together;
  std::vector<std::optional<GroupedPlan>> alone;  // of each group
  // Where none fits: of each way the one that misses the memory by the least, the closest first.
  // Replicas have none: each group holds no less than alone with the same degrees.
  std::vector<GroupedPlan> closest;
  bool complete = true;    // all of these ways were looked at from end to end
  Seconds bound;           // no plan of any kind takes less: the peak FLOP/s of all devices
  double value_bound = 0;  // no plan of any kind has a lower value; 0: nothing is known
  std::vector<LeftOutWay> left_out;
};

struct GroupSearchOptions {
  // Of the ways through several groups what planner/heterogeneous/space.h says; each group alone
  // takes it as a cluster of its own does.
  SearchSpace space;
  std::vector<int> layers_per_stage;  // empty: searched
  // `cost` and `energy` of the groups at work, `memory` as the share of its own memory that the
  // fullest device takes; goodput as one cluster of the group that loses the most by failures and
  // checkpoints.
  Objective objective = Objective::step_time;
  std::optional<Objective> second;  // the front of two objectives instead of the best of each way
  // Robust: the high end of the widest interval among the groups at work; a straggler is of the
  // stage that has most kernels.
  Valuation valuation;
  // Only lower values are of interest; where this is finite, nothing is said of what is left out.
  double worth = std::numeric_limits<double>::infinity();
  bool finds_closest = true;                       // where nothing fits
  std::vector<GroupUse> uses;                      // no other way is looked at; empty: all are
  Seconds time_limit{0};                           // 0: none
  const std::atomic<bool>* interrupted = nullptr;  // set by the caller to stop early
  std::function<void(double fraction)> progress;   // called now and then; may be empty
};

// Requires: nodes of equal numbers of devices. A limit is shared out evenly among the ways that are
// left.
GroupedPlans plan_groups(const GroupedJob& job, const GroupSearchOptions& options = {});
// All of them, the best by the objective first; of two objectives the front.
std::vector<GroupedPlan> in_order(const GroupedPlans& found);
// At most so much of the best value can be gained by any plan; 1 where none was found.
double gap_of(const GroupedPlans& found);

}  // namespace trainyard
