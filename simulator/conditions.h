// The conditions under which a task graph is played: the network that carries the calls, and what
// makes ranks differ (slow devices, thermal throttling, jitter, compute that is slowed by
// communication beside it). Slow NICs and degraded cables are not here: they are properties of the
// topology (degrade() in simulator/network/fabric.h). simulator/step/conditions.h has the
// conditions as users state them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/topology.h"
#include "model/expected.h"
#include "simulator/network/fabrics.h"
#include "simulator/network/network.h"
#include "simulator/virtual_time.h"

namespace trainyard {

// Rank r is device r of the topology, or of several counted one after the other. Clusters and
// topologies outlive the simulation.
struct NetworkModel {
  NetworkModel(const Cluster& cluster, const TopologyGraph& topology,
               NetworkGrain at = NetworkGrain::collective)
      : groups{{&cluster, &topology}}, grain(at) {}
  NetworkModel(std::vector<FabricGroup> of, NamedBoundary between, NetworkGrain at)
      : groups(std::move(of)), boundary(between), grain(at) {}

  std::vector<FabricGroup> groups;
  NamedBoundary boundary;
  NetworkGrain grain;
};

// Compute tasks that begin on the rank at or after `from` take 1 / speed of their duration, until
// the rank's next change.
struct SpeedChange {
  std::int32_t rank = 0;
  double speed = 1;
  Picoseconds from{0};
};

struct Conditions {
  std::optional<NetworkModel> network = std::nullopt;  // none: communication takes no time
  std::vector<SpeedChange> speeds = {};                // stragglers, devices that heat up
  double jitter = 0;       // standard deviation of a compute task's time / its mean
  std::uint64_t seed = 0;  // of the jitter
  // Compute time lost per second of communication beside it whose Call::contention is 1; 0 to 1.
  double overlap_slowdown = 0;
  const std::atomic<bool>* interrupted = nullptr;      // once true: stop, without a result
  std::function<void(double fraction)> progress = {};  // of tasks done; may be empty
};

// Fails unless ranks are in 0 … ranks − 1, speeds are positive, the jitter is not negative and the
// slow-down is in 0 … 1.
Expected<void> check(const Conditions& conditions, std::int32_t ranks);

// The factor that jitter puts on a task's duration: lognormal with mean 1. It depends on the seed,
// the rank and the task only, not on what else happens.
double jitter_factor(const Conditions& conditions, std::int32_t rank, std::int32_t task);

}  // namespace trainyard
