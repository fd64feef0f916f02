// What a plan for groups of unlike nodes is worth by an objective.
//
// Assumes: the groups at work are paid for and draw power for the whole step, a device more while
// its own stages compute; a job on several groups checkpoints and restarts as on as many nodes of
// the group that loses more by it, and one replica is worth as much as another.
#pragma once

#include <span>

#include "model/job.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

// The degrees with the replicas of all groups.
Plan plan_of_all(const GroupedPlan& found);

// Of clusters that a job may lie on, the one that failures and checkpoints leave it the least of
// its time on.
struct LeastGoodput {
  std::size_t cluster = 0;
  double goodput = 1;
};
// Requires: at least one cluster.
LeastGoodput least_goodput(std::span<const PreparedJob> clusters, const Plan& plan, Seconds step,
                           const Valuation& valuation);

// Whether goodput is asked for: only then are clusters looked at.
bool needs_goodput(const GroupSearchOptions& options);

// Fills in what `found` costs, its interval and its values; from its shares and its step.
// `at_work`: for every group at work a cluster of its nodes, where goodput is asked for of as many
// as are at work in all.
void set_value(const UnlikeCluster& cluster, std::span<const PreparedJob> at_work,
               const GroupSearchOptions& options, GroupedPlan& found);

// Whether the objective is one of those that are asked for.
bool asks_for(const GroupSearchOptions& options, Objective objective);

// Whether a value by it is the seconds of the step or more (goodput and stragglers add to it).
bool is_at_least_step(Objective objective);

// By their values, then by their steps.
bool is_better(const GroupedPlan& a, const GroupedPlan& b);

// No plan of any kind has a lower value; 0 where nothing is known (energy). `own`: each group on
// its own nodes. `step`: no plan takes less.
double value_bound(std::span<const PreparedJob> own, const GroupSearchOptions& options,
                   Seconds step);

}  // namespace trainyard
