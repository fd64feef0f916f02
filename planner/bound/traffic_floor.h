// Lower bound of a step from the traffic of parameters: ZeRO-2 and 3 reduce-scatter gradients, and
// ZeRO-3 all-gathers weights, beside the passes of every micro-batch, and a pass is never shorter
// than the traffic beside it.
//
// Admissible for the analytic estimate (model/cost/sharding/data_parallel.h): its overlap makes
// compute and communication never shorter than the longer of the two.
#pragma once

#include <vector>

#include "model/cost/chunk_passes.h"
#include "model/cost/estimate.h"
#include "model/cost/sharding/data_parallel.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "planner/placements.h"

namespace trainyard {

// Floors of the plans of one set of degrees, whatever the placement of their ranks: the least
// traffic of all placements counts. Traffic that plans share is priced once.
class TrafficFloors {
 public:
  // Requires: `estimator` is of `job`; both outlive this.
  TrafficFloors(const Estimator& estimator, const PreparedJob& job)
      : estimator_(estimator), job_(job) {}

  // Begins with other degrees. `placements`: indices into `all`. Requires: `all` outlives this.
  void start(const std::vector<Placement>& all, const std::vector<std::size_t>& placements);
  // Lower bound of the plan's step. `first`: what its first stage holds; `passes`: a lower bound of
  // that stage's passes of one micro-batch. 0 before ZeRO-2, and where micro-batches go both ways.
  Seconds step(const Plan& plan, const StageParameters& first, const PassTimes& passes);

 private:
  struct Known {
    int zero_stage, sharding_group;
    StageParameters first;
    ParameterTraffic least;
  };
  const ParameterTraffic& least_traffic(const Plan& plan, const StageParameters& first);

  const Estimator& estimator_;
  const PreparedJob& job_;
  std::vector<const Placement*> placements_;
  std::vector<Known> known_;
};

}  // namespace trainyard
