// Times of tasks by what they do, whatever the layer and the micro-batch. Summed in whole
// picoseconds, so that the order of operations in memory does not show in the last digit.
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
  // `task` outlives the sums.
  void add(const StepTask& task, Picoseconds time);
  // A name is made once for all tasks of an operation; operations of one name are one sum.
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
