// What the life of a run is simulated from: the size of the job, its reliability, and its
// checkpoints with everything that the plan and the cluster decide.
#pragma once

#include <optional>
#include <vector>

#include "model/cost/reliability.h"

namespace trainyard {

// Another plan, on fewer nodes, that the job can change to.
struct Replan {
  int nodes = 0;
  double speed = 0;  // relative to the whole job
};

struct LifeSettings {
  Seconds work;                  // the length of the run without any loss
  std::optional<Seconds> limit;  // the end of the calendar; none: until the work is done
  int devices = 1, nodes = 1, devices_per_node = 1;
  int replicas = 1;  // data-parallel replicas; the job may shrink by whole ones
  int nodes_per_leaf = 32;
  int spares = 0;  // nodes that are paid and wait
  Reliability reliability;
  std::vector<Replan> replans;  // in order of nodes; for ElasticPolicy::replan

  CheckpointMode mode = CheckpointMode::asynchronous;
  Seconds step;                 // time of a training step, the shortest interval
  Seconds interval;             // training between two checkpoints
  Seconds copy;                 // how long an asynchronous checkpoint blocks training
  std::vector<TierCost> tiers;  // at least one
  double interference = 0;      // training time lost a second of background writing
  std::optional<Incremental> incremental;
  int keep = 0;             // checkpoints kept in each tier; 0: all
  double load_failure = 0;  // share of loaded checkpoints that validation refuses
  Seconds validation;       // time to validate a loaded checkpoint
};

// The speed of the job without so many nodes, relative to the whole job; 0: it has to wait.
double speed_without(const LifeSettings& settings, int nodes);

// The settings of a plan's run, whose `work` and `limit` the caller sets. The checkpoint interval
// is the one asked for, else Daly's, and at least one step, which takes `step`.
LifeSettings life_settings(const PreparedJob& job, const Plan& plan, Seconds step,
                           const Reliability& reliability, const Checkpointing& checkpointing);

}  // namespace trainyard
