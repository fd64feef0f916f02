#include "planner/placements.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/cluster/topology.h"
#include "model/cost/messages/traffic.h"
#include "model/plan/process_groups.h"

namespace trainyard {
namespace {

bool same_shape(const GroupShape& a, const GroupShape& b) {
  return a == b || (a.size == 1 && b.size == 1);
}

// The process groups with states sharded over all ranks, then over each of the parts.
using PlacedRanks = std::vector<ProcessGroups>;

bool same_layer_groups(const ProcessGroups& a, const ProcessGroups& b) {
  return same_shape(a.tensor, b.tensor) && same_shape(a.context, b.context) &&
         same_shape(a.expert, b.expert) && same_shape(a.expert_tensor, b.expert_tensor);
}

// Asks for links only where the groups' shapes differ: on a routed fabric those of a new shape take
// long. Where stages lie to the domains in unlike ways, each has its own links, so shapes must
// agree.
bool same_links(const PreparedJob& job, bool stages_alike, const ProcessGroups& a,
                const ProcessGroups& b) {
  constexpr std::array kGroups = {
      &ProcessGroups::tensor,         &ProcessGroups::context,       &ProcessGroups::pipeline,
      &ProcessGroups::dense_gradient, &ProcessGroups::dense_shard,   &ProcessGroups::dense_replica,
      &ProcessGroups::expert,         &ProcessGroups::expert_tensor, &ProcessGroups::expert_data};
  return std::ranges::all_of(kGroups, [&](GroupShape ProcessGroups::*member) {
    const GroupShape one = a.*member, other = b.*member;
    return same_shape(one, other) ||
           (stages_alike && group_links(job.tiers, one) == group_links(job.tiers, other));
  });
}

bool same_everywhere(const PreparedJob& job, bool stages_alike, const PlacedRanks& a,
                     const PlacedRanks& b) {
  return std::ranges::equal(a, b, [&](const ProcessGroups& one, const ProcessGroups& other) {
    return same_links(job, stages_alike, one, other);
  });
}

PlacedRanks placed_ranks(Plan plan, const std::vector<int>& parts) {
  PlacedRanks placed{process_groups(plan)};
  for (const int part : parts) {
    plan.sharding_group = part;
    placed.push_back(process_groups(plan));
  }
  return placed;
}

}  // namespace

std::vector<PlacementClass> placement_classes(const PreparedJob& job,
                                              const std::vector<Placement>& all,
                                              const std::vector<std::size_t>& indices, Plan plan,
                                              const std::vector<int>& parts) {
  if (indices.size() == 1) return {indices};
  std::vector<std::pair<std::size_t, PlacedRanks>> seen;
  std::vector<PlacementClass> classes;
  for (const std::size_t index : indices) {
    plan.rank_order = all[index].rank_order;
    PlacedRanks placed = placed_ranks(plan, parts);
    const bool alike = stages_lie_alike(job, plan);
    const auto same_collective = [&](std::size_t other) {
      return all[other].collective == all[index].collective;
    };
    const bool known = std::ranges::any_of(seen, [&](const auto& other) {
      return same_collective(other.first) && same_everywhere(job, alike, other.second, placed);
    });
    if (known) continue;
    const auto like = std::ranges::find_if(seen, [&](const auto& other) {
      return same_collective(other.first) &&
             same_layer_groups(other.second.front(), placed.front());
    });
    if (like == seen.end()) {
      classes.push_back({index});
    } else {
      const auto starts_with = [&](const PlacementClass& one) { return one[0] == like->first; };
      std::ranges::find_if(classes, starts_with)->push_back(index);
    }
    seen.emplace_back(index, std::move(placed));
  }
  return classes;
}

}  // namespace trainyard
