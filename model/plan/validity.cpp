#include "model/plan/validity.h"

#include <array>

#include "model/plan/rules.h"
#include "model/schedule/listed.h"

namespace trainyard {
namespace {

std::string_view schedule_name(const PlanRequest& request) {
  if (!request.schedule.empty()) return request.schedule;
  return request.virtual_stages.value_or(1) > 1 ? "interleaved-1f1b" : "1f1b";
}

// The default: 2 for a V-shaped schedule, the chunks of a pass list, else 1.
int virtual_stages(const PlanRequest& request, const Schedule* schedule) {
  if (request.virtual_stages) return *request.virtual_stages;
  if (schedule == nullptr) return 1;
  if (schedule->listed != nullptr) return schedule->listed->shape.chunks;
  return schedule->route == Route::vee ? 2 : 1;
}

// Experts need sequence parallelism when t > 1 (handbook §4): then it is the default of any stack.
bool sequence_parallel(const PlanRequest& request, const Transformer& model, const Stack& stack) {
  return request.tensor_parallel > 1 &&
         request.sequence_parallel.value_or(stack.sequence_parallel || model.experts > 0);
}

}  // namespace

Proposal propose(const PlanRequest& request, const Transformer& model, const Cluster& cluster,
                 const Training& training) {
  const Count devices = Count{cluster.devices_per_node} * cluster.nodes;
  const Count replica = saturating_product(
      {request.tensor_parallel, request.context_parallel, request.pipeline_parallel});
  const Count filling = divides(replica, devices) ? devices / replica : 0;
  const Count data_parallel = request.data_parallel ? *request.data_parallel : filling;
  const Count sequences = Count{request.micro_batch} * data_parallel;
  const Schedule* schedule =
      request.passes ? &request.passes->descriptor : find_schedule(schedule_name(request));
  return {
      .request = request,
      .model = model,
      .device = cluster.device,
      .training = training,
      .devices = devices,
      .replica = replica,
      .data_parallel = data_parallel,
      .microbatches =
          divides(sequences, training.global_batch) ? training.global_batch / sequences : 0,
      .schedule = schedule,
      .virtual_stages = virtual_stages(request, schedule),
      .sequence_parallel = sequence_parallel(request, model, training.stack),
  };
}

const PlanRule* broken_rule(const Proposal& proposal) {
  for (const auto rules : {degree_rules(), step_rules(), choice_rules()}) {
    for (const PlanRule& rule : rules) {
      if (!rule.holds(proposal)) return &rule;
    }
  }
  return nullptr;
}

}  // namespace trainyard
