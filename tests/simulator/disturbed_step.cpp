#include "tests/simulator/disturbed_step.h"

#include <gtest/gtest.h>

namespace trainyard {

PreparedJob job_of(int nodes, int devices, std::int64_t global_batch) {
  Job job = llama_8b_on_h100(nodes, global_batch).job;
  job.model.layers = 8;
  job.cluster.devices_per_node = job.cluster.nvlink_domain = devices;
  job.cluster.inter.nics_per_node = devices;
  return prepare(job);
}

StepSimulation disturbed(const PreparedJob& job, const PlanRequest& request,
                         const StepConditions& conditions, NetworkGrain grain) {
  auto simulation =
      simulate(job, legal_plan(job, request), {.grain = grain, .conditions = conditions});
  if (!simulation) ADD_FAILURE() << simulation.error().where << ": " << simulation.error().message;
  return *std::move(simulation);
}

}  // namespace trainyard
