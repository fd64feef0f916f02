#include "scenarios/write/simulation.h"

#include "scenarios/plan_value.h"
#include "scenarios/write/groups.h"
#include "scenarios/write/result_json.h"
#include "simulator/reading/critical_path.h"

namespace trainyard {
namespace {

Json timeline_json(const MemoryTimeline& memory) {
  Json points = Json::array();
  for (const MemoryPoint& point : memory.points) {
    points.push_back({to_seconds(point.time).value(), point.bytes.value()});
  }
  return points;
}

// Adds what was simulated to the stages of the estimate.
void add_stage_use(Json& stages, const StepSimulation& simulation) {
  for (std::size_t i = 0; i < simulation.stages.size(); ++i) {
    const StageUse& use = simulation.stages[i];
    Json& stage = stages[i];
    stage.erase("peak_at");
    stage["busy_s"] = use.busy.value();
    stage["utilisation"] = use.share;
    stage["peak_at_s"] = to_seconds(use.memory.peak.time).value();
    if (use.memory.owner >= 0) {
      const auto owner = static_cast<std::size_t>(use.memory.owner);
      stage["peak_owner"] = std::string(simulation.step.program->buffers[owner].name);
    }
    stage["memory_timeline"] = timeline_json(use.memory);
  }
}

Json links_json(const StepSimulation& simulation) {
  Json links = Json::array();
  for (const LinkUtilisation& use : simulation.links) {
    links.push_back({{"kind", use.kind},
                     {"links", use.links},
                     {"utilisation", use.mean},
                     {"utilisation_max", use.most}});
  }
  return links;
}

Json path_json(const StepSimulation& simulation) {
  Json path = Json::array();
  const auto steps = critical_path(simulation.step, simulation.timeline);
  for (const PathShare& share : path_shares(simulation.step, steps)) {
    path.push_back(
        {{"operation", share.operation}, {"count", share.tasks}, {"time_s", share.time.value()}});
  }
  return path;
}

// Adds what only a simulation knows.
void add_played(Json& json, const Scenario& scenario, const Plan& plan,
                const StepSimulation& simulation, Seconds wall_time) {
  json["folded"] = simulation.step.folded();
  if (!simulation.unfolded_because.empty()) {
    json["unfolded_because"] = simulation.unfolded_because;
  }
  const auto& sequences = scenario.simulation.sequences;
  if (sequences && sequences->dynamic) {
    json["micro_batches"] = simulation.step.program->microbatches;
    json["micro_batch_tokens"] = most_tokens(scenario.job.training, plan);
  }
  json["ranks"] = simulation.step.graph.ranks.size();
  json["operations"] = simulation.operations;
  json["events"] = simulation.timeline.events;
  json["wall_time_s"] = wall_time.value();
  add_stage_use(json["stages"], simulation);
  json["critical_path"] = path_json(simulation);
  json["links"] = links_json(simulation);
}

}  // namespace

std::string simulation_json(const Scenario& scenario, const PreparedJob& job, const Plan& plan,
                            const StepSimulation& simulation, Seconds wall_time) {
  Json json = {{"trainyard", "simulation/1"},
               {"name", scenario.name},
               {"devices", plan.devices()},
               {"plan", plan_value(plan)},
               {"assumptions", scenario.assumptions}};
  json.update(estimate_value(scenario, job, plan, as_estimate(job, plan, simulation)));
  json["estimated_step_time_s"] = estimate(job, plan).step_time.value();
  add_played(json, scenario, plan, simulation, wall_time);
  return text_of(json);
}

std::string grouped_simulation_json(const Scenario& scenario, const UnlikeStep& step,
                                    Seconds wall_time) {
  Json json = grouped_estimate_value(scenario, step.answer);
  json["trainyard"] = "simulation/1";
  json["stages"] = stages_value(step.answer.candidate.estimate);
  json["estimated_step_time_s"] = step.estimated.value();
  add_played(json, scenario, step.answer.best.plan, step.simulation, wall_time);
  return text_of(json);
}

std::string comparison_json(Seconds before, Seconds after,
                            const std::vector<OperationDifference>& differences) {
  Json operations = Json::array();
  for (const OperationDifference& of : differences) {
    operations.push_back({{"stage", of.stage},
                          {"operation", of.operation},
                          {"tasks_a", of.tasks_before},
                          {"tasks_b", of.tasks_after},
                          {"time_a_s", of.before.value()},
                          {"time_b_s", of.after.value()}});
  }
  const Json json = {{"trainyard", "comparison/1"},
                     {"step_time_a_s", before.value()},
                     {"step_time_b_s", after.value()},
                     {"operations", std::move(operations)}};
  return text_of(json);
}

}  // namespace trainyard
