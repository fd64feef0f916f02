// From the program of a step to a graph of tasks: an operation is a task with the program's own
// dependencies (its buffers), kernels take what model/program/price.h says, and communication is a
// call of the algorithm that the estimate would choose.
//
// Two things come in beside the operations, from the calibrated cost model: what the host needs to
// launch a layer beyond its kernels (a task `launch` behind it), and the part of a tensor-parallel
// or expert exchange that its stack hides inside fused kernels, which is taken off the call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/cost/estimate.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/program/view.h"
#include "simulator/graph/task_graph.h"
#include "simulator/step/conditions.h"

namespace trainyard {

// What a task does; an operation of the program where `issued` has one.
enum class StepTaskKind : std::uint8_t { operation, launch, update_overhead };
struct StepTask {
  StepTaskKind kind = StepTaskKind::operation;
  IssuedOperation issued;
};

// What a call is to the links of one of its members.
struct CallLoad {
  Bytes sent;
  Seconds hidden;         // of its time: what fused kernels hide, which is not in StepGraph::alone
  BytesPerSecond inside;  // what its links carry in the domain; 0: it uses none there
  BytesPerSecond across;  // … and out of it
};

struct StepGraph {
  std::unique_ptr<const Program> program;
  TaskGraph graph;                           // list s belongs to stage s
  std::vector<std::vector<StepTask>> tasks;  // of each list; owners of buffers: Program::buffers
  std::vector<Seconds> alone;                // of each call: its time without other traffic
  std::vector<CallLoad> loads;               // of each call
  std::vector<std::int32_t> played_by;  // by device, where ranks of a stage are folded into several
  double kernel_stretch = 1;            // of compute tasks, by the spread of ranks' speeds
  // What the batch has over what the plan's would, where sequences are unlike: tokens, model FLOP.
  double tokens = 1, flop = 1;
  bool folded() const { return graph.folded(); }
  // Folded, with one rank for all of a stage.
  bool plays_stages() const { return folded() && played_by.empty(); }
  // Of those that a rank stands for. Requires: !plays_stages().
  std::int32_t first_device(std::int32_t rank) const {
    if (played_by.empty()) return rank;
    return static_cast<std::int32_t>(std::ranges::find(played_by, rank) - played_by.begin());
  }
};

// Folded: a rank for each stage. Requires: `plan` comes from make_plan for the same job, recompute
// `auto` decided; check() of the conditions. With micro-batches that sequences need, where they are
// dealt dynamically. Fails where the plan cannot be lowered, or its passes deadlock; and at "fold"
// where ranks of a stage have unlike work.
Expected<StepGraph> step_graph(const PreparedJob& job, const Plan& plan, bool folded,
                               const StepConditions& conditions = {});

// "linear (qkv projection) of layer 3, micro-batch 1, forward"; "launch of layer 3, …".
std::string described(const StepTask& task);

}  // namespace trainyard
