// What the life of a run is simulated from: the job's extent, and reliability and checkpoints with
// everything derived that a plan and a cluster decide.
#pragma once

#include <optional>
#include <vector>

#include "model/cost/reliability.h"

namespace trainyard {

struct LifeSettings {
  Seconds work;                  // the run without any loss
  std::optional<Seconds> limit;  // the calendar ends here
  int devices = 1, nodes = 1, devices_per_node = 1;
  int replicas = 1;  // data-parallel: what the job may shrink by
  int nodes_per_leaf = 32;
  int spares = 0;
  Reliability reliability;

  CheckpointMode mode = CheckpointMode::asynchronous;
  Seconds step;                 // a checkpoint comes after one
  Seconds interval;             // of training between two checkpoints
  Seconds copy;                 // what an asynchronous checkpoint blocks
  std::vector<TierCost> tiers;  // one at least
  double interference = 0;
  std::optional<Incremental> incremental;
  int keep = 0;  // 0: all
  double load_failure = 0;
  Seconds validation;
};

// The interval is the one asked for, else Daly's.
LifeSettings life_settings(const PreparedJob& job, const Plan& plan, const Reliability& reliability,
                           const Checkpointing& checkpointing);

}  // namespace trainyard
