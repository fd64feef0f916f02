#include "scenarios/write/estimate.h"

#include <fmt/format.h>

#include "planner/passes/auto_schedule.h"
#include "scenarios/plan_value.h"
#include "scenarios/write/result_json.h"

namespace trainyard {
namespace {

Json memory_json(const MemoryByKind& memory) {
  Json kinds = Json::object();
  for (const KindOfMemory& kind : kKindsOfMemory) {
    kinds[fmt::format("{}_bytes", kind.key)] = (memory.*kind.bytes).value();
  }
  return kinds;
}

Json breakdown_json(const Breakdown& breakdown) {
  Json parts = Json::object();
  for (const BreakdownPart& part : breakdown_parts()) {
    parts[fmt::format("{}_s", part.key)] = (breakdown.*part.time).value();
  }
  return parts;
}

}  // namespace

Json stages_value(const Estimate& estimate) {
  Json stages = Json::array();
  for (std::size_t i = 0; i < estimate.stages.size(); ++i) {
    const StageMemory& memory = estimate.stages[i].memory;
    const bool at_head = memory.moment == MemoryMoment::output_head;
    stages.push_back({{"layers", estimate.held[i].layers},
                      {"peak_memory_bytes", memory.at_peak.device().value()},
                      {"host_memory_bytes", memory.on_host.value()},
                      {"peak_at", at_head ? "output head" : "backward pass of a layer"},
                      {"memory", memory_json(memory.at_peak)}});
  }
  return stages;
}

Json estimate_value(const Scenario& scenario, const PreparedJob& job, const Plan& plan,
                    const Estimate& estimate) {
  const double devices = plan.devices();
  return {{"step_time_s", estimate.step_time.value()},
          {"step_time_low_s", estimate.step_time_low.value()},
          {"step_time_high_s", estimate.step_time_high.value()},
          {"tokens_per_second", estimate.tokens_per_second},
          {"tokens_per_second_per_device", estimate.tokens_per_second / devices},
          {"model_tflops_per_device", estimate.model_flops_per_device.value() * 1e-12},
          {"mfu", estimate.mfu},
          {"mfu_causal", causal_mfu(job, estimate)},
          {"mfu_bf16", estimate.mfu_bf16},
          {"hfu", estimate.hfu},
          {"parameters", job.parameters},
          {"active_parameters", job.active_parameters},
          {"feasible", estimate.feasible},
          {"peak_allocated_bytes", estimate.peak_allocated.value()},
          {"peak_reserved_bytes", estimate.peak_reserved.value()},
          {"peak_memory_bytes", estimate.peak_memory.value()},
          {"peak_memory_low_bytes", estimate.peak_memory_low.value()},
          {"peak_memory_high_bytes", estimate.peak_memory_high.value()},
          {"host_memory_bytes", estimate.host_memory.value()},
          {"stages", stages_value(estimate)},
          {"breakdown", breakdown_json(estimate.breakdown)},
          {"cost_per_step_usd", number_or_null(estimate.cost_per_step)},
          {"energy_per_step_joule", number_or_null(estimate.energy_per_step)},
          {"carbon_per_step_g", carbon_value(estimate.energy_per_step, scenario.carbon_intensity)}};
}

std::string estimate_json(const Scenario& scenario, const PreparedJob& job, const Plan& plan,
                          const Estimate& estimate) {
  Json json = {{"trainyard", "estimate/1"},
               {"name", scenario.name},
               {"devices", plan.devices()},
               {"plan", plan_value(plan)},
               {"assumptions", scenario.assumptions}};
  json.update(estimate_value(scenario, job, plan, estimate));
  if (scenario.plan && scenario.plan->schedule == kAutoSchedule) {
    json["auto_schedule"] = {
        {"schedule", plan.passes ? Json(nullptr) : Json(std::string(plan.schedule->name))},
        {"virtual_stages", plan.virtual_stages}};
  }
  return text_of(json);
}

}  // namespace trainyard
