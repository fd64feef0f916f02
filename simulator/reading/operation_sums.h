// Sums the times of tasks by operation, whatever the layer and the micro-batch. Sums are in whole
// picoseconds, so that they do not depend on the order in which operations lie in memory.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "simulator/step/graph.h"

namespace trainyard {

struct OperationSum {
  int tasks = 0;
  Picoseconds time{0};
};

class OperationSums {
 public:
  // Requires: `task` outlives the sums.
  void add(const StepTask& task, Picoseconds time);
  // The sums by name: `name_of` is called once for each operation, and operations of the same name
  // are added up.
  using Namer = std::string (*)(const StepTask& task);
  std::map<std::string, OperationSum> by_name(Namer name_of) const;

 private:
  struct Named {
    const StepTask* one = nullptr;
    OperationSum sum;
  };
  std::map<std::tuple<StepTaskKind, const Operation*, StepPass>, Named> sums_;
};

}  // namespace trainyard
