// What the planner may choose: for every dimension of a plan the values allowed. An empty list
// means every legal value. Fields are named after the keys of `plan`.
#pragma once

#include <string>
#include <vector>

namespace trainyard {

struct SearchSpace {
  std::vector<int> tensor_parallel;
  std::vector<int> context_parallel;
  std::vector<int> pipeline_parallel;
  std::vector<int> virtual_stages;
  std::vector<int> data_parallel;
  std::vector<int> expert_parallel;
  std::vector<int> expert_tensor_parallel;
  std::vector<int> micro_batch;
  std::vector<int> zero_stage;
  std::vector<std::string> recompute;  // "none", "selective", "full"
  std::vector<std::string> schedule;
};

}  // namespace trainyard
