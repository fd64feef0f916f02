#include "model/plan/process_groups.h"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace trainyard {
namespace {

enum Dimension { tp, cp, ep, dp, pp };
constexpr std::size_t kDimensions = 5;
using Degrees = std::array<int, kDimensions>;  // [Dimension]
using Strides = std::array<int, kDimensions>;  // [Dimension]

// The dimension whose name begins with this letter: 't' is tp.
Dimension dimension_of(char letter) {
  switch (letter) {
    case 't':
      return tp;
    case 'c':
      return cp;
    case 'e':
      return ep;
    case 'd':
      return dp;
    default:
      return pp;
  }
}

// Ranks between neighbours of each dimension: the product of the degrees laid out before it.
// `order` is "tp-cp-…": two letters and a hyphen each.
Strides rank_strides(std::string_view order, const Degrees& degrees) {
  Strides strides{};
  int ranks = 1;
  for (std::size_t place = 0; place < kDimensions; ++place) {
    const Dimension dimension = dimension_of(order[3 * place]);
    strides[dimension] = ranks;
    ranks *= degrees[dimension];
  }
  return strides;
}

// The same ranks with one level instead of two, if one level can describe them.
GroupShape simplified(GroupShape shape) {
  const bool one_run = shape.run >= shape.size || shape.jump == shape.run * shape.stride;
  if (one_run) return {shape.stride, shape.size};
  return shape.run == 1 ? GroupShape{shape.jump, shape.size} : shape;
}

// The ranks of one stage that are contiguous (`run`), and the number of stages.
struct StageLayout {
  int run = 1;
  int stages = 1;
};

// Maps a progression over the ranks of one stage (numbered within the stage) to rank numbers of the
// cluster, where the stage's ranks lie in rows of `run` with the other stages' rows between them.
GroupShape spread(int stride, int size, StageLayout layout) {
  if (layout.stages == 1 || stride * size <= layout.run) return {stride, size};
  if (stride >= layout.run) return {stride * layout.stages, size};
  return simplified({stride, size, layout.run / stride, layout.run * layout.stages});
}

// The group over two dimensions together; the faster dimension comes first.
GroupShape joined(GroupShape a, GroupShape b) {
  if (a.size == 1) return b;
  if (b.size == 1) return a;
  if (a.stride > b.stride) std::swap(a, b);
  return simplified({a.stride, a.size * b.size, a.size, b.stride});
}

// The first `size` members of a group, and the group that joins the first member of each such part.
GroupShape first_members(GroupShape group, int size) {
  return simplified({group.stride, size, group.run == 0 ? size : group.run, group.jump});
}
GroupShape across_members(GroupShape group, int size) {
  const int count = group.size / size;
  const int run = group.run == 0 ? group.size : group.run;
  if (size >= run && run < group.size) return {group.jump * (size / run), count};
  return simplified({group.stride * size, count, run / size, group.jump});
}

Degrees dense_degrees(const Plan& plan) {
  return {plan.tensor_parallel, plan.context_parallel, 1, plan.data_parallel,
          plan.pipeline_parallel};
}

Degrees expert_degrees(const Plan& plan) {
  return {plan.expert_tensor_parallel, 1, plan.expert_parallel, plan.expert_data_parallel, 1};
}

// Whether a progression over the ranks of a stage has the same shape wherever it starts: it stays
// inside one row, steps over whole rows, or fills whole rows.
bool is_alike(int stride, int size, int row) {
  const int ranks = stride * size;
  if (size == 1) return true;
  if (ranks <= row) return row % ranks == 0;
  return stride >= row ? stride % row == 0 : row % stride == 0 && ranks % row == 0;
}

}  // namespace

bool expert_groups_are_alike(const Plan& plan) {
  const int row = rank_strides(plan.rank_order, dense_degrees(plan))[pp];
  const Degrees expert = expert_degrees(plan);
  const Strides strides = rank_strides(plan.rank_order, expert);
  return plan.pipeline_parallel == 1 ||
         (is_alike(strides[tp], expert[tp], row) && is_alike(strides[ep], expert[ep], row) &&
          is_alike(strides[dp], expert[dp], row));
}

ProcessGroups process_groups(const Plan& plan) {
  const Degrees dense = dense_degrees(plan);
  const Strides dense_strides = rank_strides(plan.rank_order, dense);
  const auto group = [&](Dimension dimension) {
    return GroupShape{dense_strides[dimension], dense[dimension]};
  };
  ProcessGroups groups;
  groups.tensor = group(tp);
  groups.context = group(cp);
  groups.data = group(dp);
  groups.pipeline = group(pp);
  groups.dense_gradient = joined(groups.context, groups.data);
  groups.dense_shard = first_members(groups.dense_gradient, plan.sharding_group);
  groups.dense_replica = across_members(groups.dense_gradient, plan.sharding_group);

  const Degrees expert = expert_degrees(plan);
  const StageLayout layout{groups.pipeline.stride, plan.pipeline_parallel};
  const Strides expert_strides = rank_strides(plan.rank_order, expert);
  const auto expert_group = [&](Dimension dimension) {
    return spread(expert_strides[dimension], expert[dimension], layout);
  };
  groups.expert_tensor = expert_group(tp);
  groups.expert = expert_group(ep);
  groups.expert_data = expert_group(dp);
  return groups;
}

}  // namespace trainyard
