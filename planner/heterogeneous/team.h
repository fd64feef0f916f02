// A team: some of the groups of a cluster of unlike nodes, taken as a cluster of their own.
#pragma once

#include <vector>

#include "model/cost/estimate.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

using Members = std::vector<std::size_t>;  // indices of groups

// All teams of two groups or more, the larger first.
std::vector<Members> teams_of(std::size_t groups);

// The share of a group whose devices run all stages of the plan: alone, in replicas, or together
// with others as one cluster.
GroupShare share_of_whole(const PreparedJob& job, const Plan& plan, const Estimate& priced);

// One group alone under a plan that was priced on its nodes, `job`; the others stand idle.
GroupedPlan alone_on(const UnlikeCluster& cluster, std::size_t group, const PreparedJob& job,
                     const Plan& plan, const Estimate& priced, const GroupSearchOptions& options);

// Whether devices of the group have a rate in every precision of the recipe.
bool computes_in(const Cluster& group, const PrecisionRecipe& precision);
// The groups that compute in the training's precision; a plan may use no other.
Members groups_that_compute(const GroupedJob& job);

int nodes_of_all(const GroupedJob& job);

// The job on these groups alone.
GroupedJob job_of(const GroupedJob& job, const Members& members);

// Whether the plans agree in all that a search chooses.
bool same_plan(const GroupedPlan& a, const GroupedPlan& b);

// Turns a plan for a team into one for all groups, where the others stand idle.
GroupedPlan of_all(GroupedPlan plan, const Members& members, std::size_t groups);

}  // namespace trainyard
