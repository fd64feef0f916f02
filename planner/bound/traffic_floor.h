// What traffic of parameters makes of a step at least, where ZeRO has it in the passes of every
// micro-batch: a pass is never shorter than what runs beside it.
//
// Admissible for the analytic estimate (model/cost/sharding/data_parallel.h): its cover of
// communication by compute never does more than the time that both take.
#pragma once

#include <vector>

#include "model/cost/chunk_passes.h"
#include "model/cost/estimate.h"
#include "model/cost/sharding/data_parallel.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "planner/placements.h"

namespace trainyard {

// Of the plans of one set of degrees, wherever their ranks lie. Traffic that plans share is priced
// once.
class TrafficFloors {
 public:
  // `estimator`, of `job`, outlives this.
  TrafficFloors(const Estimator& estimator, const PreparedJob& job)
      : estimator_(estimator), job_(job) {}

  // Forgets what it knows. `placements`: indices into `all`, which outlives this.
  void start(const std::vector<Placement>& all, const std::vector<std::size_t>& placements);
  // Of a step of a plan with such a first stage, whose passes of one micro-batch take `passes` at
  // least; 0 before ZeRO-2, and where micro-batches go both ways.
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
