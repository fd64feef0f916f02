// The process groups of a plan as strides over rank numbers. Dense ranks are laid out in the plan's
// rank_order, fastest first. Experts re-use the ranks of each stage in the same order, with e_t, e
// and D_e in the places of tp, ep and dp ("MoE parallel folding", Liu et al. 2025). Handbook §1.
//
// If pp is not the last in the order (Llama 3 lays out TP, CP, PP, DP), the ranks of a stage are
// not contiguous: they lie in rows, with the rows of other stages between them. A group over CP and
// DP, or over many experts, then has two levels (GroupShape). This is exact if the expert degrees
// divide the length of a row or are multiples of it.
#pragma once

#include "model/cluster/group.h"
#include "model/plan/plan.h"

namespace trainyard {

struct ProcessGroups {
  GroupShape tensor, context, data, pipeline;
  GroupShape dense_gradient;  // D·c ranks: dense gradients are reduced over them
  GroupShape dense_shard;     // its first plan.sharding_group ranks: ZeRO shards over them
  GroupShape dense_replica;   // the ranks of dense_gradient that hold the same shard
  GroupShape expert, expert_tensor, expert_data;  // sizes e, e_t, D_e
};

// Whether every expert group of a stage has the same shape, which a single GroupShape assumes. It
// can fail only if pp is not the last in the order. Requires: the degrees fill the ranks,
// rank_order names every dimension once.
bool expert_groups_are_alike(const Plan& plan);

// Requires: a plan from make_plan (rank_order names every dimension once).
ProcessGroups process_groups(const Plan& plan);

}  // namespace trainyard
