// Goodput in closed form: what failures and checkpoints leave of the time. Handbook §10.
//
// Assumes failures at a constant rate (exponential) that stop the whole job, a node always at hand,
// one checkpoint interval throughout, and checkpoints that load. Spares that run out, correlated
// failures, silent corruption, several tiers and `load_failure` are for the simulation
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

// What decides the goodput: of training between two checkpoints, of one checkpoint's blocking part,
// of a restart, and the mean time between failures of the whole job.
struct FailureCycle {
  Seconds interval, checkpoint, restart, mtbf;
};

// Effective training-time ratio τ / (M·e^{R/M}·(e^{(τ+C)/M} − 1)).
double goodput(const FailureCycle& cycle);

// Of the job that has `devices` devices: failures of devices, racks and leaves, and heartbeats lost
// in a row add their rates.
Seconds job_mtbf(const Reliability& reliability, const Cluster& cluster, int devices);

// Of one node, by chance alone: a row of exactly `misses` lost heartbeats.
double false_alarms_per_second(const Heartbeat& heartbeat);

// Racks or leaves that so many nodes fill.
int parts_of(int nodes, int per_part);

// Nodes that a job on `devices` devices fills.
int nodes_of(const Cluster& cluster, int devices);
int spares_of(const Reliability& reliability, int nodes);

// Weights, master weights and moments of all parameters (2 + 12 bytes each under bf16 and Adam; 12
// where the stack casts the master weights on the fly and has no others).
Bytes checkpoint_bytes(const PreparedJob& job);

// One checkpoint in one tier, bandwidths and contention settled.
struct TierCost {
  Seconds write;  // of a full checkpoint
  Seconds read;
  int every = 1;
  int copies = 0;  // nodes that hold a part of it: lost when as many fail together; 0: never
};
struct CheckpointCost {
  Bytes bytes;
  Seconds copy;  // device to host: what an asynchronous checkpoint blocks
};
CheckpointCost checkpoint_cost(const PreparedJob& job, const Plan& plan,
                               const Checkpointing& checkpointing);
TierCost tier_cost(const PreparedJob& job, const Plan& plan, const Checkpointing& checkpointing,
                   const StorageTier& tier);

// Phases of a restart, on average.
struct RestartPhases {
  Seconds detect, diagnose, reschedule, start, load, warm_up;
  Seconds total() const { return detect + diagnose + reschedule + start + load + warm_up; }
};

struct GoodputEstimate {
  Seconds mtbf;  // of the job
  Bytes checkpoint_bytes;
  Seconds blocking;    // of one checkpoint
  Seconds background;  // until an asynchronous one can be loaded
  RestartPhases restart;
  Seconds young, daly;  // the optimal interval by either
  Seconds shortest;     // an interval that can be: `background` and a step fit into it
  Seconds interval;     // the one taken: as asked, else Daly's; at least `shortest`
  double goodput = 0;   // effective training-time ratio, 0 … 1
};

// The planner's objective: throughput × goodput is what a plan trains. A checkpoint comes after a
// step, which takes `step`. Allocates nothing.
GoodputEstimate estimate_goodput(const PreparedJob& job, const Plan& plan, Seconds step,
                                 const Reliability& reliability,
                                 const Checkpointing& checkpointing);

}  // namespace trainyard
