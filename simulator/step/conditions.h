// What makes the ranks or links of a step differ, as users state it: devices that are slow for all
// or part of the step (a bad part, a hot node), jitter, slow NICs and degraded cables, sequences of
// different lengths, experts of different popularity.
//
// Rank r is device r of the cluster, numbered node by node; NICs are numbered node by node too. In
// a pipeline through groups of unlike nodes, ranks and nodes count through the groups in the order
// of their stages.
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

// A device, or all devices of a node, that is slow for some time of the step.
struct Straggler {
  std::optional<int> rank, node;  // exactly one
  double speed = 1;  // of kernels, over the normal speed: at 0.8 they take 1.25 as long
  Seconds from;
  std::optional<Seconds> until;  // none: to the end of the step
};

struct StepConditions {
  std::vector<Straggler> stragglers;
  double jitter = 0;  // standard deviation of a kernel's time / its mean
  std::int64_t seed = 0;
  std::vector<DegradedLinks> links;
  std::optional<SequenceMix> sequences;  // none: all have the full length
  std::optional<ExpertRouting> routing;  // none: the plan's load_imbalance
};

// The kind as documents and error messages name it, such as "nic".
std::string_view word_of(VertexKind kind);

// Fails where the conditions name ranks, nodes, links, lengths or experts that the job does not
// have, or values out of range. The error's place is a JSON pointer below /simulation.
Expected<void> check(const StepConditions& conditions, const Job& job);

// The speed of every rank that is ever slow, at each time when it changes. Where several stragglers
// concern one rank, their speeds multiply. Requires: check().
std::vector<SpeedChange> speeds_of(const StepConditions& conditions, const Cluster& cluster);

}  // namespace trainyard
