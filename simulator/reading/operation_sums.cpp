#include "simulator/reading/operation_sums.h"

namespace trainyard {

void OperationSums::add(const StepTask& task, Picoseconds time) {
  Named& of = sums_[{task.kind, task.issued.operation, task.issued.step->pass}];
  of.one = &task;
  ++of.sum.tasks;
  of.sum.time += time;
}

std::map<std::string, OperationSum> OperationSums::by_name(Namer name_of) const {
  std::map<std::string, OperationSum> named;
  for (const auto& [key, of] : sums_) {
    OperationSum& all = named[name_of(*of.one)];
    all.tasks += of.sum.tasks;
    all.time += of.sum.time;
  }
  return named;
}

}  // namespace trainyard
