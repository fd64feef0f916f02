// Goodput in closed form: the share of the time that failures and checkpoints leave for training
// (handbook §10).
//
// Assumes failures at a constant rate (exponential) that stop the whole job, a spare node always at
// hand, one checkpoint interval throughout, and checkpoints that load. Spares that run out,
// correlated failures, silent corruption, several tiers and `load_failure` need the simulation
// (simulator/life).
// Sources: Young 1974; Daly 2006, "A higher order estimate of the optimum checkpoint interval".
#pragma once

#include "model/cost/reliability_settings.h"
#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// τ = √(2CM).
Seconds young_interval(Seconds checkpoint, Seconds mtbf);

// τ = √(2CM)·[1 + ⅓√(C/2M) + (C/2M)/9] − C for C < 2M, else M.
Seconds daly_interval(Seconds checkpoint, Seconds mtbf);

// Durations that decide the goodput: training between two checkpoints (τ), the blocking part of one
// checkpoint (C), a restart (R), and the mean time between failures of the whole job (M).
struct FailureCycle {
  Seconds interval, checkpoint, restart, mtbf;
};

// Effective training-time ratio τ / (M·e^{R/M}·(e^{(τ+C)/M} − 1)).
double goodput(const FailureCycle& cycle);

// MTBF of a job on `devices` devices. The rates of failures of devices, racks and leaves, and of
// false alarms, add up.
Seconds job_mtbf(const Reliability& reliability, const Cluster& cluster, int devices);

// Rate at which one healthy node is taken for dead: runs of at least `misses` lost heartbeats, each
// counted once.
double false_alarms_per_second(const Heartbeat& heartbeat);

// Racks or leaves that `nodes` nodes take, the last one part-filled.
int parts_of(int nodes, int per_part);

// Nodes that a job on `devices` devices takes.
int nodes_of(const Cluster& cluster, int devices);
// Spare nodes beside the job's `nodes`, as set or by default.
int spares_of(const Reliability& reliability, int nodes);

// Bytes of a full checkpoint: weights, master weights and moments of all parameters (2 + 12 bytes
// each under bf16 and Adam; 12 where the stack keeps no weights but casts the master weights).
Bytes checkpoint_bytes(const PreparedJob& job);

// Writing a full checkpoint to one tier, and reading it, contention included.
struct TierCost {
  Seconds write;
  Seconds read;
  int every = 1;   // only one of so many checkpoints goes to this tier
  int copies = 0;  // nodes that hold the same part: lost if all of them fail at once; 0: never lost
};
struct CheckpointCost {
  Bytes bytes;
  Seconds copy;  // device to host: for so long an asynchronous checkpoint blocks training
};
CheckpointCost checkpoint_cost(const PreparedJob& job, const Plan& plan,
                               const Checkpointing& checkpointing);
TierCost tier_cost(const PreparedJob& job, const Plan& plan, const Checkpointing& checkpointing,
                   const StorageTier& tier);

// Mean durations of the phases of a restart.
struct RestartPhases {
  Seconds detect, diagnose, reschedule, start, load, warm_up;
  Seconds total() const { return detect + diagnose + reschedule + start + load + warm_up; }
};

struct GoodputEstimate {
  Seconds mtbf;  // of the job
  Bytes checkpoint_bytes;
  Seconds blocking;    // one checkpoint stops training for so long
  Seconds background;  // then an asynchronous one is still being written: it cannot be loaded yet
  RestartPhases restart;
  Seconds young, daly;  // the optimal interval by either formula
  Seconds shortest;     // interval possible: the longer of `background` and a step
  Seconds interval;     // the one taken: as asked, else Daly's; at least `shortest`
  double goodput = 0;   // effective training-time ratio, 0 … 1
};

// Goodput of a plan whose step takes `step`; a checkpoint can only follow a step. Throughput ×
// goodput is the planner's objective. Allocates nothing.
GoodputEstimate estimate_goodput(const PreparedJob& job, const Plan& plan, Seconds step,
                                 const Reliability& reliability,
                                 const Checkpointing& checkpointing);

}  // namespace trainyard
