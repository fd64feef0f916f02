// Settings of a run's reliability: how often parts fail, how failures are noticed and mended, and
// how checkpoints are written. Plain values with the keys of a document's sections `reliability`
// and `checkpoint`. Defaults are those of published runs, named beside them, where there are any.
//
// Failure rates are given as mean times between failures (MTBF) of one device, rack or leaf switch;
// the rates of all parts add up to the job's (handbook §10).
#pragma once

#include <optional>
#include <vector>

#include "model/units.h"

namespace trainyard {

// How the time from one failure of a device to the next, anywhere in the job, is distributed.
enum class FailureLaw { exponential, weibull };

// What a job does when a node is lost and no spare is left.
enum class ElasticPolicy {
  wait,    // for a node to be repaired
  shrink,  // go on with fewer data-parallel replicas until a node is repaired
  replan   // go on with the best plan for the nodes that are left
};

// Racks or power units: all nodes of one are lost at once.
struct RackFailures {
  int nodes = 0;
  Seconds mtbf;  // of one rack
};

struct LeafFailures {
  Seconds mtbf;  // of one leaf switch; all nodes below it are lost with it
};

// A device that computes wrongly and does not say so.
struct SilentCorruption {
  Seconds mtbf;              // of one device
  Seconds detection = kDay;  // mean time until a loss spike or a scan shows it; assumed
};

struct Stragglers {
  Seconds mtbf;               // of one device
  double speed = 0.8;         // of the job, while one of its devices is slow; assumed
  Seconds detection = kHour;  // until it is found and evicted; assumed
};

struct Maintenance {
  Seconds every;
  Seconds duration = kHour;  // assumed
};

// A node is taken for dead after `misses` heartbeats in a row.
struct Heartbeat {
  Seconds interval{10};
  int misses = 3;
  double loss = 0;  // share of the heartbeats of healthy nodes that get lost
};

// Phases of a restart between detecting the failure and training again, without loading the
// checkpoint. Jiang et al. 2024 (MegaScale) detect and diagnose in less than 10 minutes on average
// and build the communicators of more than 10,000 GPUs in less than 30 s; the rest is assumed.
struct RestartTimes {
  Seconds diagnose = 5 * kMinute;  // find out which node failed
  Seconds reschedule = kMinute;    // another node takes its place
  Seconds start{30};               // processes, communicators
  Seconds warm_up = 2 * kMinute;   // compilation, data, first steps
};

// One failure of a trace.
struct TracedFailure {
  Seconds at;     // after the start of the run
  int nodes = 1;  // lost; 0: the job restarts on its own nodes
};

struct Reliability {
  // 419 unexpected interruptions in 54 days on 16,384 GPUs: 2.0e-5 a GPU-hour (Llama Team 2024,
  // arXiv 2407.21783, Table 5).
  Seconds device_mtbf = 54.0 * 16384 / 419 * kDay;
  FailureLaw law = FailureLaw::exponential;
  double weibull_shape = 0.7;    // Schroeder & Gibson 2010: 0.7–0.8
  double hardware_share = 0.78;  // of failures that cost a node; after others it stays (Llama Team)
  std::optional<RackFailures> racks;
  std::optional<LeafFailures> leaves;
  std::optional<SilentCorruption> silent;
  std::optional<Stragglers> stragglers;
  std::optional<Maintenance> maintenance;
  std::vector<TracedFailure> trace;  // not empty: replaces all random failures of nodes
  Heartbeat heartbeat;
  RestartTimes restart;
  std::optional<int> spares;  // idle nodes that are ready; absent: 1 % of the job's, at least 1
  Seconds repair = kDay;      // mean time to repair a node; assumed
  ElasticPolicy elastic = ElasticPolicy::wait;
};

enum class CheckpointMode {
  synchronous,  // training stops until the checkpoint is written
  asynchronous  // training stops for the copy to host memory and goes on beside the writing
};

enum class TierKind {
  memory,  // of the hosts
  nvme,    // of the nodes
  storage  // a store of its own
};

// A place for checkpoints. Those in a node's memory or on its NVMe are lost with the node, unless
// peers have copies.
struct StorageTier {
  TierKind kind = TierKind::storage;
  int every = 1;  // only one of so many checkpoints is written here
  int peers = 1;  // memory, nvme: other nodes that keep a copy of a node's part
  // Of the whole tier. Absent: the nodes' NICs (memory), their NVMe, or 1 GB/s for each node (a
  // store), which is Llama 3's (2 TB/s sustained for 2,048 nodes). Reading: as writing is said.
  std::optional<BytesPerSecond> write_bandwidth, read_bandwidth;
  double contention = 0;  // share of the bandwidth that other jobs take
};

// Between two full checkpoints only what changed is written; loading reads the last full one and
// all since.
struct Incremental {
  int full_every = 10;
  double share = 0.1;  // of the bytes of a full one
};

struct Checkpointing {
  CheckpointMode mode = CheckpointMode::asynchronous;
  std::optional<Seconds> interval;  // training time between two checkpoints; absent: Daly's
  std::optional<Bytes> bytes;       // absent: weights, master weights and moments
  bool sharded = true;              // all nodes write a part; else only those of one replica
  double interference = 0;          // training time lost a second of background writing
  std::optional<Incremental> incremental;
  int keep = 0;                    // checkpoints a tier retains; 0: all
  double load_failure = 0;         // share of checkpoints that validation on load refuses
  Seconds validation{0};           // of a loaded checkpoint
  std::vector<StorageTier> tiers;  // in the order of writing; empty: one store
};

}  // namespace trainyard
