#include "model/program/rank_layout.h"

#include <algorithm>

namespace trainyard {
namespace {

// The members of two dimensions together, neighbours first.
GroupShape joined(GroupShape fast, GroupShape slow) {
  if (fast.size == 1) return slow;
  return {fast.stride, fast.size * slow.size, fast.size, slow.stride};
}

}  // namespace

int GroupMembers::operator[](int member) const {
  const int run = shape.run == 0 ? shape.size : shape.run;
  return first + member % run * shape.stride + member / run * shape.jump;
}

int GroupMembers::index_of(int rank) const {
  const int run = shape.run == 0 ? shape.size : shape.run;
  const int distance = rank - first;
  // Runs may lie inside one another's strides: the jump is then the smaller of the two.
  if (run < shape.size && shape.jump < shape.stride) {
    return distance / shape.stride + distance % shape.stride / shape.jump * run;
  }
  const int runs_before = run < shape.size ? distance / shape.jump : 0;
  return (distance - runs_before * shape.jump) / shape.stride + runs_before * run;
}

RankLayout::RankLayout(const Plan& plan, int kv_heads)
    : groups_(process_groups(plan)),
      ranks_(plan.devices()),
      kv_replicas_(plan.tensor_parallel / std::min(plan.tensor_parallel, std::max(1, kv_heads))) {}

RankCoordinates RankLayout::coordinates(int rank) const {
  const auto place = [rank](GroupShape group) { return rank / group.stride % group.size; };
  return {.tensor = place(groups_.tensor),
          .context = place(groups_.context),
          .data = place(groups_.data),
          .stage = place(groups_.pipeline)};
}

int RankLayout::rank_at(RankCoordinates at) const {
  return at.tensor * groups_.tensor.stride + at.context * groups_.context.stride +
         at.data * groups_.data.stride + at.stage * groups_.pipeline.stride;
}

int RankLayout::in_stage(int rank, int stage) const {
  RankCoordinates at = coordinates(rank);
  at.stage = stage;
  return rank_at(at);
}

GroupMembers RankLayout::members(Group group, int rank) const {
  RankCoordinates at = coordinates(rank);
  GroupShape shape;
  switch (group) {
    case Group::none:
      break;
    case Group::tensor:
      at.tensor = 0;
      shape = groups_.tensor;
      break;
    case Group::kv_head:
      at.tensor -= at.tensor % kv_replicas_;
      shape = {groups_.tensor.stride, kv_replicas_};
      break;
    case Group::dense_gradient:
      at.context = at.data = 0;
      shape = joined(groups_.context, groups_.data);
      break;
    case Group::tied_embedding:
      at.stage = 0;
      shape = {groups_.pipeline.stride * (groups_.pipeline.size - 1), 2};
      break;
    case Group::model:
      at.tensor = at.stage = 0;
      shape = joined(groups_.tensor, groups_.pipeline);
      break;
  }
  return {rank_at(at), shape};
}

}  // namespace trainyard
