// The search space: the values that each dimension of a plan may take. An empty field allows every
// legal value, unless its comment says otherwise. Fields are named after the keys of `plan`.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "model/plan/plan.h"
#include "model/workload/stack.h"

namespace trainyard {

// A named choice of what lies in the memory of the hosts.
struct OffloadChoice {
  std::string_view name;
  Offload offload;
  std::vector<int> StackOffload::*zero_stages = nullptr;  // ZeRO stages where a stack supports it
};
inline constexpr std::array kOffloads = {
    OffloadChoice{"none", {}},
    OffloadChoice{"optimizer", {.optimizer = OffloadTarget::host}, &StackOffload::optimizer},
    OffloadChoice{"activations", {.activations = OffloadTarget::host}, &StackOffload::activations},
    OffloadChoice{"states",
                  {.parameters = OffloadTarget::host,
                   .gradients = OffloadTarget::host,
                   .optimizer = OffloadTarget::host},
                  &StackOffload::states},
    OffloadChoice{"all",
                  {.parameters = OffloadTarget::host,
                   .gradients = OffloadTarget::host,
                   .optimizer = OffloadTarget::host,
                   .activations = OffloadTarget::host},
                  &StackOffload::all},
};

// A set of whole numbers: a list, or all from `least` to `most`, both included.
struct Numbers {
  std::vector<int> values;  // empty: all from `least` to `most`
  int least = 0, most = std::numeric_limits<int>::max();

  Numbers() = default;
  Numbers(std::initializer_list<int> list) : values(list) {}
  static Numbers between(int least, int most) {
    Numbers numbers;
    numbers.least = least;
    numbers.most = most;
    return numbers;
  }

  bool empty() const { return *this == Numbers(); }
  void clear() { *this = {}; }
  bool has(int value) const {
    if (values.empty()) return value >= least && value <= most;
    return std::find(values.begin(), values.end(), value) != values.end();
  }
  friend bool operator==(const Numbers&, const Numbers&) = default;
};

// As a value of `sharding_group`: all ranks that hold the same parameters, however many those are.
inline constexpr int kShardOverAll = -1;

// What the backward pass recomputes: the same on every stage, or a choice of each stage's own.
struct RecomputeChoice {
  Recompute every_stage;
  std::vector<Recompute> per_stage;  // p entries; empty: `every_stage`

  bool is_for(int stages) const {
    return per_stage.empty() || per_stage.size() == static_cast<std::size_t>(stages);
  }
  friend bool operator==(const RecomputeChoice&, const RecomputeChoice&) = default;
};

// Whether a list contains a value; and whether a list of allowed values, of which an empty one
// allows all, allows it.
template <typename T, typename U>
bool holds(const std::vector<T>& values, const U& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}
template <typename T, typename U>
bool allows(const std::vector<T>& values, const U& value) {
  return values.empty() || holds(values, value);
}

struct SearchSpace {
  Numbers tensor_parallel;
  std::vector<bool> sequence_parallel;
  Numbers context_parallel;
  std::vector<std::string> context_parallel_algorithm;  // "ring", "all-gather", "ulysses"
  Numbers pipeline_parallel;
  Numbers virtual_stages;
  Numbers data_parallel;
  Numbers expert_parallel;
  Numbers expert_tensor_parallel;
  Numbers micro_batch;
  Numbers zero_stage;
  Numbers sharding_group;  // or kShardOverAll; empty: that, and smaller groups if the stack can
  std::vector<RecomputeChoice> recompute;
  std::vector<std::string> schedule;
  std::vector<std::string> rank_order;  // empty: the plan's unless usual, else those of the stack
  std::vector<std::string> collective;  // empty: the plan's, else the fastest for every message
  std::vector<std::string> offload;     // of kOffloads; empty: the plan's, else what the stack can

  friend bool operator==(const SearchSpace&, const SearchSpace&) = default;
};

}  // namespace trainyard
