// Values of a plan for groups of unlike nodes by the objectives.
//
// Assumes: the groups at work are paid for and draw power for the whole step, and a device draws
// more while its own stages compute; a job on several groups checkpoints and restarts as it would
// on as many nodes of the group that loses the most by it; all replicas are worth the same.
#pragma once

#include <span>

#include "model/job.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

// The plan's degrees, with data parallelism counting the replicas of all groups.
Plan plan_of_all(const GroupedPlan& found);

// The cluster, of those that a job may run on, where failures and checkpoints leave the job the
// least of its time.
struct LeastGoodput {
  std::size_t cluster = 0;
  double goodput = 1;
};
// Requires: at least one cluster.
LeastGoodput least_goodput(std::span<const PreparedJob> clusters, const Plan& plan, Seconds step,
                           const Valuation& valuation);

// Whether goodput is an objective: only then set_value needs the whole clusters.
bool needs_goodput(const GroupSearchOptions& options);

// Fills in the cost, the interval and the values of `found` from its shares and its step.
// `at_work`: a cluster of its nodes for every group at work; where goodput is an objective, of as
// many nodes as all groups at work have together.
void set_value(const UnlikeCluster& cluster, std::span<const PreparedJob> at_work,
               const GroupSearchOptions& options, GroupedPlan& found);

// Whether the objective is the first or the second of the options.
bool asks_for(const GroupSearchOptions& options, Objective objective);

// Whether a value by the objective is never below the step in seconds.
bool is_at_least_step(Objective objective);

// Compares by the first value, then by the step.
bool is_better(const GroupedPlan& a, const GroupedPlan& b);

// Lower bound of the value of every plan; 0 where nothing is known (energy). `own`: each group on
// its own nodes. `step`: a lower bound of every plan's step.
double value_bound(std::span<const PreparedJob> own, const GroupSearchOptions& options,
                   Seconds step);

}  // namespace trainyard
