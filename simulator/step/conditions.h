// What makes the ranks or links of a step unlike, as users name it: devices that are slow for all
// or some of the step (a bad part, a hot node), jitter, slow NICs and degraded cables, sequences of
// unlike lengths, experts of unlike popularity.
//
// Rank r is device r of the cluster, node by node; NICs are numbered node by node too.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "model/units.h"
#include "simulator/expert_routing.h"
#include "simulator/network/degraded_links.h"
#include "simulator/sequence_mix.h"

namespace trainyard {

struct Cluster;      // model/cluster/cluster.h
struct Job;          // model/job.h
struct SpeedChange;  // simulator/conditions.h

// One device, or all those of a node, from one time of the step to another.
struct Straggler {
  std::optional<int> rank, node;  // exactly one
  double speed = 1;               // of their kernels, over that of all others
  Seconds from;
  std::optional<Seconds> until;  // none: to the end
};

struct StepConditions {
  std::vector<Straggler> stragglers;
  double jitter = 0;  // standard deviation of a kernel's time over its mean
  std::int64_t seed = 0;
  std::vector<DegradedLinks> links;
  std::optional<SequenceMix> sequences;  // none: all of the full length
  std::optional<ExpertRouting> routing;  // none: as the plan's load_imbalance says
};

// "nic", as documents and error lines name it.
std::string_view word_of(VertexKind kind);

// Requires of the conditions that the job has their ranks, nodes, links, lengths and experts. The
// error's place is a JSON pointer below /simulation.
Expected<void> check(const StepConditions& conditions, const Job& job);

// The speed of every rank that is ever slow, from each time at which it changes. The speeds of
// stragglers that meet on a rank multiply. Requires: check().
std::vector<SpeedChange> speeds_of(const StepConditions& conditions, const Cluster& cluster);

}  // namespace trainyard
