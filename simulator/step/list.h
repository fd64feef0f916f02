// The task list of one stage: its operations in program order, with the dependencies and the memory
// that follow from their buffers (docs/adr/0006-program.md). Internal to the lowering of a program
// to a task graph.
#pragma once

#include <vector>

#include "model/program/price.h"
#include "simulator/step/calls.h"
#include "simulator/step/graph.h"
#include "simulator/step/loads.h"

namespace trainyard {

// Which group a list means by one of its channels; each rank that runs the list has its own. Calls
// of a group match by their order, which only a single stream fixes, so a group has a separate
// channel for each stream on which it communicates.
struct StepChannel {
  TaskKind kind = TaskKind::collective;
  Stream stream = Stream::compute;
  Group group = Group::none;
  Phase phase = Phase::forward;  // of messages: their direction
  int peer = -1;                 // of messages: the other stage
  friend bool operator==(const StepChannel&, const StepChannel&) = default;
};

struct StepList {
  TaskList list;
  std::vector<StepTask> tasks;
  std::vector<StepChannel> channels;
};

// Durations of kernels and host times, the same for all stages.
class StepTimes {
 public:
  StepTimes(const PreparedJob& job, const Plan& plan, const Program& program);
  Picoseconds kernel(int block, std::size_t operation) const {
    return kernels_[static_cast<std::size_t>(block)][operation];
  }
  // Host time to launch a block in that pass, beyond its kernels and exchanges.
  Picoseconds launch(int block, StepPass pass) const;
  Picoseconds update_overhead() const { return update_overhead_; }
  double kernel_stretch() const { return kernel_stretch_; }
  // Whether sends between stages run beside the kernels; if not, they are on the compute stream.
  bool sends_beside() const { return sends_beside_; }

 private:
  void add_launches(const PreparedJob& job, const Plan& plan, const Program& program);

  double kernel_stretch_ = 1;
  bool sends_beside_ = true;
  Picoseconds update_overhead_{0};
  std::vector<std::vector<Picoseconds>> kernels_;
  struct Launch {
    Picoseconds forward{0}, backward{0};
  };
  std::vector<Launch> launches_;  // by block
};

StepList step_list(const Program& program, int stage, const StepTimes& times,
                   const StepCalls& calls, const StepLoads& loads);

}  // namespace trainyard
