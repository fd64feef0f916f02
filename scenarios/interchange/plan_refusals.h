// Refusals of parts of a plan that several export targets share.
#pragma once

#include <initializer_list>
#include <string_view>

#include "model/plan/plan.h"
#include "scenarios/interchange/refusal.h"
#include "scenarios/scenario.h"

namespace trainyard {

void refuse_pipeline(const Plan& plan, Refusals& refusals);  // refuses any pipeline
void refuse_experts(const Plan& plan, Refusals& refusals);   // refuses any expert parallelism
void refuse_names(Refusals& refusals, std::string pointer, std::string_view found,
                  std::initializer_list<std::string_view> allowed);
// Refuses what no target can express: recomputation stage by stage, a collective algorithm, an
// optimizer without barrier.
void refuse_common(const Scenario& scenario, const Plan& plan, Refusals& refusals);
// Refuses a capacity factor and a pass list.
void refuse_capacity_and_passes(const Plan& plan, Refusals& refusals);

}  // namespace trainyard
