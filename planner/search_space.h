// What the planner may choose: for every dimension of a plan the values allowed. An empty list
// means every legal value, unless it says otherwise. Fields are named after the keys of `plan`.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "model/plan/plan.h"

namespace trainyard {

// What may lie in the memory of the hosts.
struct OffloadChoice {
  std::string_view name;
  Offload offload;
};
inline constexpr std::array kOffloads = {
    OffloadChoice{"none", {}},
    OffloadChoice{"optimizer", {.optimizer = OffloadTarget::host}},
    OffloadChoice{"activations", {.activations = OffloadTarget::host}},
    OffloadChoice{"states",
                  {.parameters = OffloadTarget::host,
                   .gradients = OffloadTarget::host,
                   .optimizer = OffloadTarget::host}},
    OffloadChoice{"all",
                  {.parameters = OffloadTarget::host,
                   .gradients = OffloadTarget::host,
                   .optimizer = OffloadTarget::host,
                   .activations = OffloadTarget::host}},
};

struct SearchSpace {
  std::vector<int> tensor_parallel;
  std::vector<bool> sequence_parallel;
  std::vector<int> context_parallel;
  std::vector<std::string> context_parallel_algorithm;  // "ring", "all-gather", "ulysses"
  std::vector<int> pipeline_parallel;
  std::vector<int> virtual_stages;
  std::vector<int> data_parallel;
  std::vector<int> expert_parallel;
  std::vector<int> expert_tensor_parallel;
  std::vector<int> micro_batch;
  std::vector<int> zero_stage;
  std::vector<int> sharding_group;     // empty: all ranks that hold the same parameters
  std::vector<std::string> recompute;  // "none", "selective", "full"
  std::vector<std::string> schedule;
  std::vector<std::string> rank_order;  // empty: the plan's, else "tp-cp-ep-dp-pp"
  std::vector<std::string> collective;  // empty: the fastest for every message
  std::vector<std::string> offload;     // of kOffloads; empty: as the plan has it
};

}  // namespace trainyard
