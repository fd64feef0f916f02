#include "scenarios/write_groups.h"

#include "scenarios/plan_value.h"

namespace trainyard {
namespace {

Json share_json(const Cluster& cluster, const GroupShare& share) {
  return {{"name", cluster.name},
          {"devices", cluster.devices()},
          {"stages", share.stages},
          {"layers", share.layers},
          {"replicas", share.replicas},
          {"micro_batches", share.microbatches},
          {"peak_memory_bytes", share.peak_memory.value()}};
}

}  // namespace

Json grouped_plan_value(const UnlikeCluster& cluster, const GroupedPlan& plan) {
  Json groups = Json::array();
  for (std::size_t g = 0; g < plan.shares.size(); ++g) {
    groups.push_back(share_json(cluster.groups[g], plan.shares[g]));
  }
  return {{"use", name_of(plan.use)},
          {"first", plan.order.front()},
          {"order", plan.order},
          {"step_time_s", plan.step_time.value()},
          {"boundary_s", plan.boundary.value()},
          {"plan", plan_value(plan.plan)},
          {"groups", std::move(groups)}};
}

std::string_view name_of(GroupUse use) {
  switch (use) {
    case GroupUse::pipeline:
      return "pipeline";
    case GroupUse::replicas:
      return "replicas";
    case GroupUse::alone:
      break;
  }
  return "alone";
}

std::string groups_json(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                        const GroupedPlans& found) {
  Json list = Json::array();
  for (const GroupedPlan& plan : plans) list.push_back(grouped_plan_value(*scenario.unlike, plan));
  const Json search = {{"complete", found.complete},
                       {"gap", gap_of(found)},
                       {"step_time_bound_s", found.bound.value()}};
  return text_of({{"trainyard", "group-plans/1"},
                  {"name", scenario.name},
                  {"plans", list},
                  {"search", search}});
}

}  // namespace trainyard
