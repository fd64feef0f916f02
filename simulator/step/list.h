// The task list of one stage: its operations in program order, with the dependencies and the memory
// that their buffers say (docs/adr/0006-program.md). Internal to the way from a program to a task
// graph.
#pragma once

#include <vector>

#include "model/program/price.h"
#include "simulator/step/calls.h"
#include "simulator/step/graph.h"
#include "simulator/step/loads.h"

namespace trainyard {

// What a list says of the group behind one of its channels. Order on a stream is order of the list,
// so a group has a channel for each stream on which it talks.
struct StepChannel {
  TaskKind kind = TaskKind::collective;
  Stream stream = Stream::compute;
  Group group = Group::none;
  Phase phase = Phase::forward;  // messages: which way they go
  int peer = -1;                 // messages: the other stage
  friend bool operator==(const StepChannel&, const StepChannel&) = default;
};

struct StepList {
  TaskList list;
  std::vector<StepTask> tasks;
  std::vector<StepChannel> channels;
};

// Durations and host times that all stages share.
class StepTimes {
 public:
  StepTimes(const PreparedJob& job, const Plan& plan, const Program& program);
  Picoseconds kernel(int block, std::size_t operation) const {
    return kernels_[static_cast<std::size_t>(block)][operation];
  }
  // Beyond the kernels and exchanges of the block, in a step of that pass.
  Picoseconds launch(int block, StepPass pass) const;
  Picoseconds update_overhead() const { return update_overhead_; }
  double kernel_stretch() const { return kernel_stretch_; }
  // Whether sends between stages run beside the kernels; else they stand among them.
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
