// The conditions of a simulation: the network that carries the calls, and what makes ranks unlike:
// slow devices, thermal throttling, jitter, compute that loses time to communication beside it.
// (A slow NIC or a degraded cable is a property of the topology: degrade() in
// simulator/network/fabric.h. What users say: simulator/step/conditions.h.)
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/topology.h"
#include "model/expected.h"
#include "simulator/network/network.h"
#include "simulator/virtual_time.h"

namespace trainyard {

// Rank r is device r of the topology. Both outlive the simulation.
struct NetworkModel {
  const Cluster& cluster;
  const TopologyGraph& topology;
  NetworkGrain grain = NetworkGrain::collective;
};

// From `from` on, compute tasks that begin on the rank take 1 / speed of their duration.
struct SpeedChange {
  std::int32_t rank = 0;
  double speed = 1;
  Picoseconds from{0};
};

struct Conditions {
  std::optional<NetworkModel> network = std::nullopt;  // none: communication takes no time
  std::vector<SpeedChange> speeds = {};  // of one rank by time: a straggler, a device that heats up
  double jitter = 0;       // standard deviation of a compute task's time over its mean
  std::uint64_t seed = 0;  // of the jitter
  // Seconds of compute lost a second of communication beside it that contends in full.
  double overlap_slowdown = 0;
  const std::atomic<bool>* interrupted = nullptr;      // stop early, without a result
  std::function<void(double fraction)> progress = {};  // of the tasks; now and then; may be empty
};

// Requires of the numbers: speeds positive, jitter not negative, the slow-down from 0 to 1.
Expected<void> check(const Conditions& conditions, std::int32_t ranks);

// What jitter makes of a task's duration: lognormal with mean 1, the same for the same seed, rank
// and task whatever else happens.
double jitter_factor(const Conditions& conditions, std::int32_t rank, std::int32_t task);

}  // namespace trainyard
