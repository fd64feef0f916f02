// The life of a run as JSON, the output of `trainyard goodput`.
#pragma once

#include <optional>
#include <string>

#include "model/plan/plan.h"
#include "scenarios/scenario.h"
#include "simulator/life/bill.h"
#include "simulator/life/tuning.h"

namespace trainyard {

struct RunReport {
  bool feasible = true;               // the plan fits the memory
  std::optional<GroupedPlan> groups;  // plan of groups of unlike nodes
  LifeSettings settings;
  Campaign campaign;
  GoodputEstimate closed_form;
  std::optional<BestInterval> interval;  // absent: interrupted, or none makes progress
  std::optional<BestSpares> spares;
  Bill bill;
};

std::string goodput_json(const Scenario& scenario, const Plan& plan, const RunReport& report);

}  // namespace trainyard
