#include "tests/scenarios/interchange/plans.h"

#include <fmt/format.h>

#include "scenarios/plan_value.h"

namespace trainyard {

Scenario scenario_of(const std::string& model, const std::string& stack, int nodes,
                     int global_batch, const std::string& node) {
  return parse_scenario(fmt::format(R"({{"trainyard": "scenario/1", "name": "drawn", "model": "{}",
               "cluster": {{"node": "{}", "nodes": {}}},
               "training": {{"global_batch": {}, "sequence_length": 4096, "stack": "{}"}}}})",
                                    model, node, nodes, global_batch, stack),
                        "drawn")
      .value();
}

std::vector<Plan> random_plans(const Scenario& scenario, int count,
                               const std::function<void(Draw&, PlanRequest&)>& vary,
                               const std::function<bool(const Plan&)>& expressible) {
  const Job& job = scenario.job;
  std::vector<Plan> plans;
  Draw draw(7);
  for (int tries = 0; tries < 200'000 && static_cast<int>(plans.size()) < count; ++tries) {
    PlanRequest request;
    vary(draw, request);
    auto plan = plan_if_legal(request, job.model, job.cluster, job.training);
    if (plan && expressible(*plan)) plans.push_back(*std::move(plan));
  }
  return plans;
}

std::string text_of_plan(const Plan& plan) { return plan_value(plan).dump(1); }

}  // namespace trainyard
