// Random legal plans for round trips: a request is drawn field by field, and make_plan says whether
// it is legal.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "model/plan/plan.h"
#include "scenarios/scenario.h"

namespace trainyard {

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  int power_of_two(int most) { return 1 << below(most + 1); }
  bool coin() { return below(2) == 1; }

 private:
  std::mt19937 random_;
};

// A scenario of a network of the catalog on `nodes` nodes of kind `node`.
Scenario scenario_of(const std::string& model, const std::string& stack, int nodes,
                     int global_batch = 256, const std::string& node = "dgx-h100-80gb");

// Draws requests until `count` of them give a plan that is legal and that `expressible` accepts.
std::vector<Plan> random_plans(const Scenario& scenario, int count,
                               const std::function<void(Draw&, PlanRequest&)>& vary,
                               const std::function<bool(const Plan&)>& expressible);

// All keys of a plan, as its document writes them.
std::string text_of_plan(const Plan& plan);

}  // namespace trainyard
