// Makes the graph of tasks from the program of a step. Every operation is a task, and a task
// depends on those that wrote or read its buffers before. A kernel takes the time that
// model/program/price.h gives; communication is a call of the algorithm that the estimate would
// choose.
//
// Two effects of the calibrated cost model are added: the time that the host needs to launch a
// layer beyond its kernels' own time (a task `launch` behind the layer), and the part of a
// tensor-parallel or expert exchange that the stack hides inside fused kernels, which is taken off
// the call.
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
#include "simulator/step/site.h"

namespace trainyard {

// What a task does. `issued` is its operation of the program, if it has one; a `launch` or
// `update_overhead` names the operation that it follows.
enum class StepTaskKind : std::uint8_t { operation, launch, update_overhead };
struct StepTask {
  StepTaskKind kind = StepTaskKind::operation;
  IssuedOperation issued;
};

// What a call puts on the links of one of its members.
struct CallLoad {
  Bytes sent;
  Seconds hidden;         // the part of its time that fused kernels hide; not in StepGraph::alone
  BytesPerSecond inside;  // bandwidth of the links that it uses in the domain; 0: none
  BytesPerSecond across;  // likewise of the links out of the domain
};

struct StepGraph {
  std::unique_ptr<const Program> program;
  TaskGraph graph;                           // list s is that of stage s
  std::vector<std::vector<StepTask>> tasks;  // of each list; Buffer::owner indexes Program::buffers
  std::vector<Seconds> alone;                // of each call: its exposed time without other traffic
  std::vector<CallLoad> loads;               // of each call
  // For each device its rank in `graph`, where a stage is folded into several ranks; else empty.
  std::vector<std::int32_t> played_by;
  // How many times as long compute tasks take as on a mean rank, by the spread of ranks' speeds.
  double kernel_stretch = 1;
  // Tokens and model FLOP of the batch over the plan's, where sequences have different lengths.
  double tokens = 1, flop = 1;
  bool folded() const { return graph.folded(); }
  // Whether one rank is played for each stage.
  bool plays_stages() const { return folded() && played_by.empty(); }
  // The first of the devices that a rank stands for. Requires: !plays_stages().
  std::int32_t first_device(std::int32_t rank) const {
    if (played_by.empty()) return rank;
    return static_cast<std::int32_t>(std::ranges::find(played_by, rank) - played_by.begin());
  }
};

// Lowers the plan and makes its graph; `folded`: one rank for each stage. Where sequences are dealt
// dynamically the step has as many micro-batches as they need. Requires: `plan` comes from
// make_plan for the same job, with recompute `auto` decided; check() of the conditions. Fails where
// the plan cannot be lowered or its passes deadlock, and with an error at "fold" where ranks of a
// stage have different work.
Expected<StepGraph> step_graph(const StepSite& site, const Plan& plan, bool folded,
                               const StepConditions& conditions = {});
inline Expected<StepGraph> step_graph(const PreparedJob& job, const Plan& plan, bool folded,
                                      const StepConditions& conditions = {}) {
  return step_graph(site_of(job, plan), plan, folded, conditions);
}

// For example "linear (qkv projection) of layer 3, micro-batch 1, forward" or "launch of layer 3,
// …".
std::string described(const StepTask& task);

}  // namespace trainyard
