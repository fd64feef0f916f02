// Plans for a cluster of two groups of unlike nodes (two device generations). Two ways to use both:
// a pipeline through them, where each group has stages of its own and as many layers as suits its
// devices and their memory (planner/allocation.h); or replicas of the whole network on each, with
// micro-batches in the proportion of their speed. And each group alone, to see what it adds.
//
// Assumes: a stage costs what it costs in a cluster made of its group's nodes alone; sends of the
// boundary's two stages and the gradients of unlike replicas cross the boundary, all devices of the
// narrower side at once; the schedule is 1F1B. Nodes of both groups have as many devices.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

constexpr std::size_t kGroups = 2;

struct UnlikeCluster {
  std::array<Cluster, kGroups> groups;
  BytesPerSecond boundary;  // of a device, between the groups, each direction
  Seconds boundary_latency;
};

struct GroupedJob {
  Transformer model;
  Training training;
  UnlikeCluster cluster;
};

// What the NICs of a group give each of its devices.
BytesPerSecond nics_of_a_device(const Cluster& group);

struct GroupShare {
  int stages = 0;        // of the pipeline, or of a replica
  int layers = 0;        // of all its stages, or of a replica
  int replicas = 0;      // of what it holds
  int microbatches = 0;  // of a replica
  Bytes peak_memory;     // of its fullest device
};

enum class GroupUse { pipeline, replicas, alone };

struct GroupedPlan {
  GroupUse use = GroupUse::alone;
  std::size_t first = 0;  // the group of the first stages, or the one that works alone
  Plan plan;              // degrees; of a pipeline with the layers and recomputation of its stages
  std::array<GroupShare, kGroups> shares;
  Seconds step_time;
  Seconds boundary;  // of it, what crosses between the groups and shows
  bool feasible = false;
};

struct GroupedPlans {
  std::optional<GroupedPlan> pipeline;       // the best of each way that fits
  std::optional<GroupedPlan> even_pipeline;  // of its degrees, with even layers and one
                                             // recomputation
  std::optional<GroupedPlan> replicas;
  std::array<std::optional<GroupedPlan>, kGroups> alone;
  bool complete = true;  // all of these ways were looked at from end to end
  Seconds bound;         // no plan of any kind takes less: the peak FLOP/s of all devices
};

struct GroupSearchOptions {
  Seconds time_limit{0};                           // 0: none
  const std::atomic<bool>* interrupted = nullptr;  // set by the caller to stop early
  std::function<void(double fraction)> progress;   // called now and then; may be empty
};

// Requires: nodes of equal numbers of devices. A limit is shared out evenly among the ways that are
// left.
GroupedPlans plan_groups(const GroupedJob& job, const GroupSearchOptions& options = {});
// All of them, the fastest first.
std::vector<GroupedPlan> in_order(const GroupedPlans& found);
// At most so much of the best step can be gained by any plan; 1 where none was found.
double gap_of(const GroupedPlans& found);

// A pipeline with the layers and the recomputation that `plan` names: `stages` of the first group.
GroupedPlan price_pipeline(const GroupedJob& job, const PlanRequest& request, std::size_t first);

}  // namespace trainyard
