// Plans for a cluster of groups of unlike nodes (device generations). There are four ways to use
// it: a pipeline through several groups, where each group has stages of its own with as many layers
// as suit its devices (planner/heterogeneous/pipeline.h); replicas of the whole network on several
// groups, with micro-batches in proportion to their speed (planner/heterogeneous/replicas.h);
// several groups together as one cluster of the slowest (planner/heterogeneous/together.h); or one
// group alone. The first three are searched for every choice of groups, so that a group that only
// delays is left out.
//
// Assumes: a stage costs what it costs in a cluster of its group's nodes; sends between stages of
// two groups and the gradients of unlike replicas cross the boundary, all devices of the narrower
// side at once; the schedule is 1F1B (together: any). Nodes of all groups have as many devices.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "model/cluster/unlike_cluster.h"
#include "model/cost/estimate.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"
#include "planner/objective.h"
#include "planner/search_space.h"

namespace trainyard {

// The most groups of a cluster: there are 60 orders of two or more of four.
constexpr std::size_t kMostGroups = 4;

struct GroupedJob {
  Transformer model;
  Training training;
  UnlikeCluster cluster;
};

// One group's part in a plan.
struct GroupShare {
  int stages = 0;             // its stages of the pipeline, or those of a replica; 0: it is idle
  int layers = 0;             // of all its stages, or of a replica
  int replicas = 0;           // data-parallel ones, of its stages or of the whole network
  int microbatches = 0;       // of a replica
  RecomputeChoice recompute;  // of a replica's stages; that of a pipeline stands in the plan
  Bytes peak_memory;          // of its fullest device
  int fullest_stage = 0;      // with that device; numbered in the whole pipeline or in a replica
  Seconds busy;               // compute time of one of its devices in a step
  Seconds kernels;            // kernel time in a step on its stage that has the most
};

enum class GroupUse { pipeline, replicas, together, alone };

struct GroupedPlan {
  GroupUse use = GroupUse::alone;
  std::vector<std::size_t> order;  // the groups at work; of a pipeline in the order of its stages
  Plan plan;  // degrees; for a pipeline also the layers and recomputation of its stages
  std::vector<GroupShare> shares;  // of every group of the cluster
  Seconds step_time;
  // 10–90 % interval: as wide as that of the group at work whose devices are known the least.
  Seconds step_time_low, step_time_high;
  // Exposed communication between groups, a part of the step; none: of a simulated step, which does
  // not tell.
  std::optional<Seconds> boundary = Seconds(0);
  // The parts of the step: for a pipeline those of the stage with the most to do, where
  // communication between groups counts as pipeline communication; for replicas those of the group
  // that ends last, where it counts as data-parallel communication.
  Breakdown breakdown;
  bool feasible = false;
  // Of the groups at work only, because the others are free for something else. Unknown where one
  // of their devices has no price (no power).
  std::optional<Dollars> cost_per_step;
  std::optional<Joules> energy_per_step;
  // The largest share of its own memory that a device of the groups at work takes. Replicas have
  // the same degrees on every group, so that this is a device of the group with the least memory,
  // unless that group recomputes more. Where memory is minimised, each group recomputes what leaves
  // the least in memory.
  double fullness = 0;
  std::optional<double> goodput;  // where that is the objective
  double value = 0;               // by the objective: see GroupSearchOptions
  double second_value = 0;        // by the second one, where there is one
};

// A way to use the groups of which the space allows no plan.
struct LeftOutWay {
  GroupUse use = GroupUse::alone;
  std::optional<std::size_t> group;  // for GroupUse::alone
  std::string_view key;    // of the space, which excludes the way; empty: no single key does
  std::string_view value;  // the only value of `key` that the way has; empty: it has others
};

struct GroupedPlans {
  Objective objective = Objective::step_time;  // by which the plans are ordered
  std::optional<Objective> second;
  // With two objectives the Pareto front of the plans that were priced; the best of each way,
  // below, then stay empty.
  std::vector<GroupedPlan> front;
  std::optional<GroupedPlan> pipeline;       // the best of each way that fits
  std::optional<GroupedPlan> even_pipeline;  // same degrees, even layers, one recomputation
  std::optional<GroupedPlan> replicas;
  std::optional<GroupedPlan> together;
  std::vector<std::optional<GroupedPlan>> alone;  // of each group
  // Where none fits: of each way the plan that misses the memory by the least, the closest first.
  // Replicas have none here: each group holds no less than alone with the same degrees.
  std::vector<GroupedPlan> closest;
  bool complete = true;    // false: the search of some way was cut short
  Seconds bound;           // lower bound of every plan's step: the peak FLOP/s of all devices
  double value_bound = 0;  // no plan of any kind has a lower value; 0: nothing is known
  std::vector<LeftOutWay> left_out;
};

struct GroupSearchOptions {
  // Ways through several groups use it as planner/heterogeneous/space.h says, each group alone as a
  // cluster of its own does.
  SearchSpace space;
  std::vector<int> layers_per_stage;  // empty: searched
  // `cost` and `energy` are those of the groups at work, `memory` is GroupedPlan::fullness, and
  // `goodput` that of one cluster made of the group that loses the most by failures and
  // checkpoints.
  Objective objective = Objective::step_time;
  std::optional<Objective> second;  // set: the front of both replaces the best of each way
  // Robust: steps count at the high end of the widest interval among the groups at work, and a
  // straggler slows the stage that has the most kernel time.
  Valuation valuation;
  // Only lower values are of interest; where it is finite, groups alone are never `left_out`.
  double worth = std::numeric_limits<double>::infinity();
  bool finds_closest = true;                       // where nothing fits
  std::vector<GroupUse> uses;                      // no other way is looked at; empty: all are
  Seconds time_limit{0};                           // 0: none
  const std::atomic<bool>* interrupted = nullptr;  // set by the caller to stop early
  std::function<void(double fraction)> progress;   // called now and then; may be empty
};

// Searches all ways to use the groups; a time limit is shared out evenly among those that are left.
// Requires: nodes of all groups have the same number of devices.
GroupedPlans plan_groups(const GroupedJob& job, const GroupSearchOptions& options = {});
// All plans found, the best by the objective first; with two objectives the front.
std::vector<GroupedPlan> in_order(const GroupedPlans& found);
// The largest fraction of the best value that any plan can gain; 1 where none was found.
double gap_of(const GroupedPlans& found);

}  // namespace trainyard
