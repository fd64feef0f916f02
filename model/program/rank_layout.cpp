#include "model/program/rank_layout.h"

#include <algorithm>

namespace trainyard {
namespace {

// The first `size` members of a group (`neighbours`), or every `size`-th member.
GroupShape part_of(GroupShape group, int size, bool neighbours) {
  const int run = group.run == 0 ? group.size : group.run;
  if (neighbours) {
    return size <= run ? GroupShape{group.stride, size}
                       : GroupShape{group.stride, size, run, group.jump};
  }
  const int count = group.size / size;
  if (size >= run) return {run < group.size ? group.jump * (size / run) : group.stride, count};
  return {group.stride * size, count, run / size, group.jump};
}

// The group over two dimensions together; members of `fast` come first.
GroupShape joined_after(GroupShape fast, GroupShape slow) {
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
      sharding_group_(plan.sharding_group),
      kv_replicas_(plan.tensor_parallel / std::min(plan.tensor_parallel, std::max(1, kv_heads))) {}

RankCoordinates RankLayout::coordinates(int rank) const {
  const auto place = [rank](GroupShape group) { return rank / group.stride % group.size; };
  const auto expert_place = [&](GroupShape group) {
    return place_in_stage(rank) / stride_in_stage(group) % group.size;
  };
  return {.tensor = place(groups_.tensor),
          .context = place(groups_.context),
          .data = place(groups_.data),
          .stage = place(groups_.pipeline),
          .expert_tensor = expert_place(groups_.expert_tensor),
          .expert = expert_place(groups_.expert),
          .expert_data = expert_place(groups_.expert_data)};
}

// The number of a rank within its stage. The ranks of a stage lie in rows of pipeline.stride ranks.
int RankLayout::place_in_stage(int rank) const {
  const int row = groups_.pipeline.stride;
  return rank / (row * groups_.pipeline.size) * row + rank % row;
}

// The stride of an expert group within the stage, where no other stages' rows are stepped over.
int RankLayout::stride_in_stage(GroupShape shape) const {
  return shape.stride < groups_.pipeline.stride ? shape.stride
                                                : std::max(1, shape.stride / groups_.pipeline.size);
}

GroupMembers RankLayout::expert_part(GroupShape shape, int rank) const {
  const int row = groups_.pipeline.stride;
  const int place = place_in_stage(rank);
  const int stride = stride_in_stage(shape);
  const int first = place - place / stride % shape.size * stride;
  const int stage = coordinates(rank).stage;
  return {first / row * row * groups_.pipeline.size + stage * row + first % row, shape};
}

int RankLayout::rank_at(RankCoordinates at) const {
  return at.tensor * groups_.tensor.stride + at.context * groups_.context.stride +
         at.data * groups_.data.stride + at.stage * groups_.pipeline.stride;
}

int RankLayout::in_stage(int rank, int stage) const {
  const GroupShape stages = groups_.pipeline;
  return rank + (stage - rank / stages.stride % stages.size) * stages.stride;
}

// The dense-gradient group falls into sharding groups of neighbours.
GroupMembers RankLayout::dense_part(Group group, int rank) const {
  const GroupMembers all = members(Group::dense_gradient, rank);
  const int index = all.index_of(rank);
  const bool shard = group == Group::dense_shard;
  const int first = shard ? index - index % sharding_group_ : index % sharding_group_;
  return {all[first], part_of(all.shape, sharding_group_, shard)};
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
    case Group::context:
      at.context = 0;
      shape = groups_.context;
      break;
    case Group::dense_gradient:
      at.context = at.data = 0;
      shape = groups_.dense_gradient;
      break;
    case Group::dense_shard:
    case Group::dense_replica:
      return dense_part(group, rank);
    case Group::expert:
      return expert_part(groups_.expert, rank);
    case Group::expert_tensor:
      return expert_part(groups_.expert_tensor, rank);
    case Group::expert_data:
      return expert_part(groups_.expert_data, rank);
    case Group::tied_embedding:
      at.stage = 0;
      shape = {groups_.pipeline.stride * (groups_.pipeline.size - 1), 2};
      break;
    case Group::mirror: {
      const int last = groups_.pipeline.size - 1;
      at.stage = std::min(at.stage, last - at.stage);
      shape = {groups_.pipeline.stride * (last - 2 * at.stage), 2};
      break;
    }
    case Group::model:
      at.tensor = at.stage = 0;
      shape = joined_after(groups_.tensor, groups_.pipeline);
      break;
    case Group::all:
      return {0, {1, ranks_}};
  }
  return {rank_at(at), shape};
}

Element whole_element(const Cut& cut, std::int64_t rows, const RankCoordinates& at, Element local) {
  const bool experts = cut.experts > 0;
  const std::int64_t height = experts ? rows / cut.experts : rows;  // of one matrix
  const int shard = experts ? at.expert_tensor : at.tensor;
  Element whole{local.row % height, local.column};
  if (cut.axis == CutAxis::rows) whole.row = whole_index(cut, shard, whole.row);
  if (cut.axis == CutAxis::columns) whole.column = whole_index(cut, shard, whole.column);
  if (!experts) return whole;
  std::int64_t whole_height = cut.axis == CutAxis::rows ? 0 : height;
  if (cut.axis == CutAxis::rows) {
    for (const Segment& segment : cut.segments) whole_height += segment.whole;
  }
  whole.row += (std::int64_t{at.expert} * cut.experts + local.row / height) * whole_height;
  return whole;
}

}  // namespace trainyard
