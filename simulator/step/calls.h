// The calls of a program: for every operation of a block that communicates, the algorithm that
// carries it, and its calibrated time over that algorithm's closed form (Call::stretch). Where the
// stack overlaps the exchanges of tensor or expert parallelism with compute, the calibrated share
// that is hidden is taken off the call, and the exposed rest is played on the compute stream. The
// same is done for experts' exchanges in two passes that a schedule runs side by side. Internal to
// the lowering of a program to a task graph.
#pragma once

#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/program/program.h"
#include "model/program/rank_layout.h"
#include "model/program/view.h"
#include "simulator/step/graph.h"
#include "simulator/step/site.h"

namespace trainyard {

// For each block, whether a layer of the network calls it.
std::vector<bool> called_by_layers(const Program& program);

// [block][operation] → call; −1: the operation does not communicate.
struct CallTable {
  std::vector<std::vector<int>> alone;
  std::vector<std::vector<int>> in_pairs;  // for passes that run side by side with another one
};

struct CallList {
  std::vector<Call> calls;
  std::vector<Seconds> alone;  // of each call: exposed time without other traffic
  std::vector<CallLoad> loads;
};

// Stages on unlike nodes have calls of their own, except collectives between stages: those are
// priced as in the first group, because all members must make the same call.
class StepCalls {
 public:
  // Requires: the site outlives the calls.
  StepCalls(const StepSite& site, const Plan& plan, const Program& program,
            const RankLayout& layout);

  const CallList& all() const { return all_; }
  // The call that an operation makes on a stage; −1: it does not communicate.
  int of(int stage, const IssuedOperation& issued) const;

 private:
  using Sends = std::vector<std::vector<int>>;  // [block][operation]; −1: it is no send

  void add_group(std::size_t group, const Plan& plan, const Program& program,
                 const RankLayout& layout);
  Sends sends_over(const Boundary& boundary, const Program& program);

  const StepSite& site_;
  CallList all_;
  std::vector<CallTable> of_group_;
  std::vector<std::vector<Sends>> crossing_;  // [from group][to group]
};

}  // namespace trainyard
