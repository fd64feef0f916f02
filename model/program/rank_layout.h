// Where a rank stands among the plan's groups: its coordinates, and who else takes part in a
// collective or a send. Ranks are laid out in the plan's rank_order (model/plan/process_groups.h).
#pragma once

#include "model/plan/plan.h"
#include "model/plan/process_groups.h"
#include "model/program/operation.h"

namespace trainyard {

struct RankCoordinates {
  int tensor = 0;
  int context = 0;
  int data = 0;
  int stage = 0;
};

// The members of one group, in the order in which parts are gathered.
struct GroupMembers {
  int first = 0;
  GroupShape shape;
  int size() const { return shape.size; }
  int operator[](int member) const;
  int index_of(int rank) const;  // Requires: a member
};

class RankLayout {
 public:
  explicit RankLayout(const Plan& plan, int kv_heads);

  int ranks() const { return ranks_; }
  RankCoordinates coordinates(int rank) const;
  int rank_at(RankCoordinates at) const;
  // The rank with the same place in another stage.
  int in_stage(int rank, int stage) const;
  // Requires: group is not `none`.
  GroupMembers members(Group group, int rank) const;

 private:
  GroupMembers dense_part(Group group, int rank) const;

  ProcessGroups groups_;
  int ranks_ = 1;
  int sharding_group_ = 1;
  int kv_replicas_ = 1;
};

}  // namespace trainyard
