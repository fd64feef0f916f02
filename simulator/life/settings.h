// What the life of a run is simulated from: the job's extent, and reliability and checkpoints with
// everything derived that a plan and a cluster decide.
#pragma once

#include <optional>
#include <vector>

#include "model/cost/reliability.h"

namespace trainyard {

// What the job does with another plan on fewer nodes.
struct Replan {
  int nodes = 0;
  double speed = 0;  // of the whole job's
};

struct LifeSettings {
  Seconds work;                  // the run without any loss
  std::optional<Seconds> limit;  // the calendar ends here
  int devices = 1, nodes = 1, devices_per_node = 1;
  int replicas = 1;  // data-parallel: what the job may shrink by
  int nodes_per_leaf = 32;
  int spares = 0;
  Reliability reliability;
  std::vector<Replan> replans;  // fewer nodes first; of ElasticPolicy::replan

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

// Speed of the job without so many nodes, as a share of the whole job's; 0: it has to wait.
double speed_without(const LifeSettings& settings, int nodes);

// The interval is the one asked for, else Daly's; at least a step, which takes `step`.
LifeSettings life_settings(const PreparedJob& job, const Plan& plan, Seconds step,
                           const Reliability& reliability, const Checkpointing& checkpointing);

}  // namespace trainyard
