#include "scenarios/write_groups.h"

#include <fmt/format.h>

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

std::vector<std::size_t> groups_without_precision(const Scenario& scenario) {
  const PrecisionRecipe& precision = scenario.job.training.precision;
  const std::vector<Cluster>& groups = scenario.unlike->groups;
  std::vector<std::size_t> left_out;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Device& device = groups[g].device;
    const bool computes =
        device.supports(precision.layer_gemm) && device.supports(precision.head_gemm);
    if (!computes) left_out.push_back(g);
  }
  return left_out;
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

namespace {

Json left_out_json(const Scenario& scenario) {
  Json list = Json::array();
  for (const std::size_t g : groups_without_precision(scenario)) {
    const Cluster& group = scenario.unlike->groups[g];
    list.push_back({{"group", g},
                    {"name", group.name},
                    {"reason", fmt::format("{} does not compute in {}", group.device.name,
                                           scenario.job.training.precision.name)}});
  }
  return list;
}

}  // namespace

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
                  {"left_out", left_out_json(scenario)},
                  {"search", search}});
}

}  // namespace trainyard
