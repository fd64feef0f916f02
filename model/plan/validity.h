// What makes a plan legal, as a table of rules in the order in which they are tried: degrees that
// the network's shapes allow, that fill the cluster, that the batch and the schedule can take. A
// rule is cheap to check; the sentence that refuses a plan, with the nearest legal value, is only
// built for the first rule that does not hold. Handbook §1, §4, §8; design §3.
#pragma once

#include <cstdint>
#include <span>

#include "model/plan/plan.h"
#include "model/schedule/schedule.h"

namespace trainyard {

// A request with what follows from it. Every field is defined for every request, legal or not.
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
  int virtual_stages = 1;              // 2 where the V of the schedule asks for it
  bool sequence_parallel = false;
};

Proposal propose(const PlanRequest& request, const Transformer& model, const Cluster& cluster,
                 const Training& training);

struct PlanRule {
  bool (*holds)(const Proposal& proposal);     // Requires: all rules before it hold.
  Error (*refusal)(const Proposal& proposal);  // Requires: it does not hold, all before it do.
};

std::span<const PlanRule> degree_rules();  // shapes of the network, devices, sequence, experts
std::span<const PlanRule> step_rules();    // batch, layers, schedule
std::span<const PlanRule> choice_rules();  // ZeRO, recomputation, experts' load, placement

// The ZeRO stage asked for, or the stack's.
int zero_stage_of(const PlanRequest& request, const Stack& stack);

// Whether what lies on the hosts can be priced: no weights and gradients beside MTP layers, which
// fetch a matrix once more. Weights are the optimizer's where a stack under ZeRO-3 keeps no others.
bool can_offload(const Transformer& model, const Training& training, const Offload& offload,
                 int zero_stage);

// The first rule that does not hold; nullptr: the proposal is a plan.
const PlanRule* broken_rule(const Proposal& proposal);

}  // namespace trainyard
