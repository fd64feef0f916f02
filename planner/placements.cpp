#include "planner/placements.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/cost/traffic.h"
#include "model/plan/process_groups.h"

namespace trainyard {
namespace {

bool same_shape(const GroupShape& a, const GroupShape& b) {
  return a == b || (a.size == 1 && b.size == 1);
}

bool same_links(const GroupLinks& a, const GroupLinks& b) {
  return a == b || (a.size == 1 && b.size == 1);
}

struct PlacedRanks {
  ProcessGroups groups;
  std::vector<PlanLinks> links;  // with states sharded over all ranks, and over each of the parts
};

bool same_layer_groups(const ProcessGroups& a, const ProcessGroups& b) {
  return same_shape(a.tensor, b.tensor) && same_shape(a.context, b.context) &&
         same_shape(a.expert, b.expert) && same_shape(a.expert_tensor, b.expert_tensor);
}

bool same_links(const PlanLinks& a, const PlanLinks& b) {
  constexpr std::array kLinks = {
      &PlanLinks::tensor,         &PlanLinks::context,       &PlanLinks::pipeline,
      &PlanLinks::dense_gradient, &PlanLinks::dense_shard,   &PlanLinks::dense_replica,
      &PlanLinks::expert,         &PlanLinks::expert_tensor, &PlanLinks::expert_data};
  return std::ranges::all_of(
      kLinks, [&](GroupLinks PlanLinks::*member) { return same_links(a.*member, b.*member); });
}

bool same_everywhere(const PlacedRanks& a, const PlacedRanks& b) {
  return std::ranges::equal(a.links, b.links, [](const PlanLinks& one, const PlanLinks& other) {
    return same_links(one, other);
  });
}

PlacedRanks placed_ranks(const PreparedJob& job, Plan plan, const std::vector<int>& parts) {
  PlacedRanks placed{process_groups(plan), {plan_links(job, plan)}};
  for (const int part : parts) {
    plan.sharding_group = part;
    placed.links.push_back(plan_links(job, plan));
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
    PlacedRanks placed = placed_ranks(job, plan, parts);
    const auto same_collective = [&](std::size_t other) {
      return all[other].collective == all[index].collective;
    };
    const bool known = std::ranges::any_of(seen, [&](const auto& other) {
      return same_collective(other.first) && same_everywhere(other.second, placed);
    });
    if (known) continue;
    const auto like = std::ranges::find_if(seen, [&](const auto& other) {
      return same_collective(other.first) && same_layer_groups(other.second.groups, placed.groups);
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
