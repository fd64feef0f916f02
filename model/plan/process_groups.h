// The process groups of a plan as strides over ranks. Dense ranks are laid out in the plan's
// rank_order (fastest first); expert ranks re-use the ranks of each stage with e_t, e, D_e in the
// places of tp, ep, dp ("MoE parallel folding", Liu et al. 2025). Handbook §1.
//
// With pp in the middle of the order (Llama 3 lays out TP, CP, PP, DP) the ranks of a stage are not
// contiguous and a group over CP and DP, or over many experts, has two levels (GroupShape); exact
// where the expert degrees and the rows of a stage's ranks divide each other.
#pragma once

#include "model/cluster/group.h"
#include "model/plan/plan.h"

namespace trainyard {

struct ProcessGroups {
  GroupShape tensor, context, data, pipeline;
  GroupShape dense_gradient;  // D·c ranks: over which dense gradients are reduced
  GroupShape dense_shard;    // sharding group inside it (ZeRO): its first plan.sharding_group ranks
  GroupShape dense_replica;  // across sharding groups
  GroupShape expert, expert_tensor, expert_data;  // sizes e, e_t, D_e
};

// Where pp is not the last of an order, the ranks of a stage lie in rows, the other stages' between
// them. Whether each group of experts lies as every other one then, which a GroupShape takes for
// granted. Requires: degrees that fill the ranks, rank_order names every dimension once.
bool expert_groups_are_alike(const Plan& plan);

// Requires: a plan from make_plan (rank_order names every dimension once).
ProcessGroups process_groups(const Plan& plan);

}  // namespace trainyard
