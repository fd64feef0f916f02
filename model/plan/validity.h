// The rules that make a plan legal, as a table in the order in which they are tried: the degrees
// suit the network's shapes and fill the cluster, and the batch and the schedule can take them. A
// rule is cheap to check. The sentence that refuses a plan, with the nearest legal value, is built
// only for the first rule that does not hold. Handbook §1, §4, §8; design §3.
#pragma once

#include <cstdint>
#include <span>

#include "model/plan/plan.h"
#include "model/schedule/schedule.h"

namespace trainyard {

// A request and the values that follow from it. Every field is defined even for an illegal request.
struct Proposal {
  const PlanRequest& request;
  const Transformer& model;
  const Device& device;
  const Training& training;
  std::int64_t devices = 0;            // N
  std::int64_t replica = 0;            // t·c·p; saturates
  std::int64_t data_parallel = 0;      // D; 0: t·c·p does not divide N
  std::int64_t microbatches = 0;       // m; 0: b·D does not divide B
  const Schedule* schedule = nullptr;  // nullptr: none of that name
  int virtual_stages = 1;              // the request's, or the schedule's default
  bool sequence_parallel = false;
};

Proposal propose(const PlanRequest& request, const Transformer& model, const Cluster& cluster,
                 const Training& training);

struct PlanRule {
  bool (*holds)(const Proposal& proposal);     // Requires: all rules before it hold.
  Error (*refusal)(const Proposal& proposal);  // Requires: it is the first that does not hold.
};

std::span<const PlanRule> degree_rules();  // shapes of the network, devices, sequence, experts
std::span<const PlanRule> step_rules();    // batch, layers, schedule
std::span<const PlanRule> choice_rules();  // ZeRO, recomputation, experts' load, placement

// The ZeRO stage that was asked for; else 3 with a sharding group, else the stack's default.
int zero_stage_of(const PlanRequest& request, const Stack& stack);

// Whether the copies of this offload can be priced. With MTP layers the weights and gradients of
// the passes must stay on the device, because those layers fetch a shared matrix once more. Under
// ZeRO-3 with a stack that keeps no 16-bit copy, the only weights are the optimizer's master
// weights.
bool can_offload(const Transformer& model, const Training& training, const Offload& offload,
                 int zero_stage);

// The first rule that does not hold; nullptr: the proposal is legal.
const PlanRule* broken_rule(const Proposal& proposal);

}  // namespace trainyard
