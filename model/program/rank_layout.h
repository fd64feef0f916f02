// A rank's coordinates in the plan's groups, and the ranks that take part in a collective or a send
// with it. Ranks are laid out in the plan's rank_order (model/plan/process_groups.h).
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
  // The same rank in the layout that experts have over the ranks of a stage.
  int expert_tensor = 0;
  int expert = 0;
  int expert_data = 0;
};

// The members of one group as rank numbers, in the order in which parts are gathered.
struct GroupMembers {
  int first = 0;
  GroupShape shape;
  int size() const { return shape.size; }
  int operator[](int member) const;
  int index_of(int rank) const;  // Requires: the rank is a member.
};

class RankLayout {
 public:
  explicit RankLayout(const Plan& plan, int kv_heads);

  int ranks() const { return ranks_; }
  RankCoordinates coordinates(int rank) const;
  // The rank with these tensor, context, data and stage coordinates; the expert ones are not read.
  int rank_at(RankCoordinates at) const;
  // The rank with the same place in another stage.
  int in_stage(int rank, int stage) const;
  // The group of this kind that `rank` belongs to. Requires: group is not `none`.
  GroupMembers members(Group group, int rank) const;

 private:
  GroupMembers dense_part(Group group, int rank) const;
  GroupMembers expert_part(GroupShape shape, int rank) const;
  int place_in_stage(int rank) const;
  int stride_in_stage(GroupShape shape) const;

  ProcessGroups groups_;
  int ranks_ = 1;
  int sharding_group_ = 1;
  int kv_replicas_ = 1;
};

// The place in the whole tensor of an element of a weight or gradient of the rank at `at`.
struct Element {
  std::int64_t row = 0, column = 0;
};
Element whole_element(const Cut& cut, std::int64_t rows, const RankCoordinates& at, Element local);

}  // namespace trainyard
