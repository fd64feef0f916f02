// The process groups of a plan as strides over ranks. Dense ranks are laid out in the plan's
// rank_order (fastest first); expert ranks re-use the same devices with e_t, e, D_e in the places
// of tp, ep, dp ("MoE parallel folding", Liu et al. 2025). Handbook §1.
#pragma once

#include "model/cluster/group.h"
#include "model/plan/plan.h"

namespace trainyard {

struct ProcessGroups {
  GroupShape tensor, context, data, pipeline;
  GroupShape dense_gradient;  // D·c ranks: over which dense gradients are reduced
  GroupShape dense_shard;     // sharding group inside it (ZeRO), size plan.sharding_group
  GroupShape dense_replica;   // across sharding groups
  GroupShape expert, expert_tensor, expert_data;  // sizes e, e_t, D_e
};

ProcessGroups process_groups(const Plan& plan);

}  // namespace trainyard
