// What a run's reliability is made of: how often what fails, how that is noticed and mended, and
// how checkpoints are written. Plain values with the keys of a document's sections `reliability`
// and `checkpoint`; the defaults are those of published runs where there are any, named beside
// them.
//
// Rates are given as mean times between failures (MTBF) of one device, rack or leaf switch; those
// of all of them add up to the job's (handbook §10).
#pragma once

#include <optional>
#include <vector>

#include "model/units.h"

namespace trainyard {

// How the time from one failure of a device to the next, anywhere in the job, is distributed.
enum class FailureLaw { exponential, weibull };

// What a job does that misses a node and has no spare.
enum class ElasticPolicy {
  wait,    // for a node to be repaired
  shrink,  // go on with fewer data-parallel replicas until one is
  replan   // go on with the best plan for the nodes that are left
};

// Racks, power units: all nodes of one are lost at once.
struct RackFailures {
  int nodes = 0;
  Seconds mtbf;  // of one rack
};

struct LeafFailures {
  Seconds mtbf;  // of one leaf switch; takes the nodes below it
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

// What comes after the detection, but for the loading. Jiang et al. 2024 (MegaScale) detect and
// diagnose in less than 10 minutes on average and build the communicators of more than 10,000 GPUs
// in less than 30 s; the rest is assumed.
struct RestartTimes {
  Seconds diagnose = 5 * kMinute;  // which node is it
  Seconds reschedule = kMinute;    // another node takes its place
  Seconds start{30};               // processes, communicators
  Seconds warm_up = 2 * kMinute;   // compilation, data, first steps
};

// One entry of a trace: when, after the start, and how many nodes were lost (0: the job restarts on
// its own nodes).
struct TracedFailure {
  Seconds at;
  int nodes = 1;
};

struct Reliability {
  // 419 unexpected interruptions in 54 days on 16,384 GPUs: 2.0e-5 a GPU-hour (Llama Team 2024,
  // arXiv 2407.21783, Table 5).
  Seconds device_mtbf = 54.0 * 16384 / 419 * kDay;
  FailureLaw law = FailureLaw::exponential;
  double weibull_shape = 0.7;    // Schroeder & Gibson 2010: 0.7–0.8
  double hardware_share = 0.78;  // of them cost a node; the others restart on theirs (same source)
  std::optional<RackFailures> racks;
  std::optional<LeafFailures> leaves;
  std::optional<SilentCorruption> silent;
  std::optional<Stragglers> stragglers;
  std::optional<Maintenance> maintenance;
  std::vector<TracedFailure> trace;  // not empty: instead of all random failures of nodes
  Heartbeat heartbeat;
  RestartTimes restart;
  std::optional<int> spares;  // hot nodes beside the job's; absent: 1 % of its nodes, at least 1
  Seconds repair = kDay;      // mean; assumed
  ElasticPolicy elastic = ElasticPolicy::wait;
};

enum class CheckpointMode {
  synchronous,  // training stands until the checkpoint is written
  asynchronous  // it stands for the copy to host memory; the writing goes on beside it
};

enum class TierKind {
  memory,  // of the hosts
  nvme,    // of the nodes
  storage  // a store of its own
};

// Where checkpoints go. What lies in or on a node is lost with it, unless peers have copies.
struct StorageTier {
  TierKind kind = TierKind::storage;
  int every = 1;  // of so many checkpoints one
  int peers = 1;  // memory, nvme: other nodes that have a copy of a node's part
  // Of the whole tier. Absent: a node's NICs (memory), its NVMe, or 1 GB/s a node of a store, which
  // is Llama 3's (2 TB/s sustained for 2,048 nodes).
  std::optional<BytesPerSecond> write_bandwidth, read_bandwidth;
  double contention = 0;  // share of the bandwidth that other jobs take
};

// Between two full checkpoints only what changed is written; loading reads all since the full one.
struct Incremental {
  int full_every = 10;
  double share = 0.1;  // of the bytes of a full one
};

struct Checkpointing {
  CheckpointMode mode = CheckpointMode::asynchronous;
  std::optional<Seconds> interval;  // of training between two; absent: Daly's
  std::optional<Bytes> bytes;       // absent: weights, master weights and moments
  bool sharded = true;              // all nodes write; else those of one replica
  double interference = 0;          // training time lost a second of background writing
  std::optional<Incremental> incremental;
  int keep = 0;                    // checkpoints a tier retains; 0: all
  double load_failure = 0;         // share of checkpoints that validation on load refuses
  Seconds validation{0};           // of a loaded checkpoint
  std::vector<StorageTier> tiers;  // the first is written first; empty: one store
};

}  // namespace trainyard
