// What the stages of a pipeline through unlike groups send to each other: inside a group over that
// group's own fabric, and from the last stage of a group to the first one of the next over the
// boundary between them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/cluster/unlike_cluster.h"
#include "model/cost/messages/pipeline_sends.h"
#include "model/cost/messages/traffic.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

// Stages in a row on the nodes of one group.
struct StagesOfGroup {
  std::size_t group = 0;
  const PreparedJob* job = nullptr;  // on these nodes
  int first = 0, end = 0;
  PlanLinks links;
  PipelineSends sends;  // from one of these stages to the next
};
// `own`: a job of every group, on its own nodes; it outlives the result. `order`: the groups, in
// the order of their stages. Requires: whole stages fill each group.
std::vector<StagesOfGroup> stages_of_groups(const NamedBoundary& named,
                                            std::span<const PreparedJob> own, const Plan& plan,
                                            const std::vector<std::size_t>& order);

// What a rank of a stage has for its messages to a stage of another group: the ranks of a stage
// share the NICs of their node, unless the bandwidth of the boundary is named.
Boundary boundary_of(const NamedBoundary& named, const PreparedJob& one, const PreparedJob& other,
                     const Plan& plan);

// The sends between the last stage of one group and the first of the next.
struct Crossing {
  struct Side {
    std::size_t stage = 0;
    Seconds send;  // of a device, over the boundary
    Seconds more;  // how much longer that takes than the send inside its group that its passes have
  };
  Side before, behind;
  bool overlapped = false;
  double slowdown = 0;  // of compute beside an overlapped send

  // The stage before the boundary sends activations, the one behind it gradients. Where sends are
  // overlapped, each side's sends slow the compute beside them.
  void add_to(std::vector<PassTimes>& passes) const;
  // What add_to() adds to the stage of one of the sides.
  Seconds added_to(const Side& side) const;
  // What the sends of one micro-batch add to fill and drain where they are overlapped: all but the
  // part that the passes beside them have already.
  Seconds in_ramps() const;
};
std::vector<Crossing> crossings(const NamedBoundary& named, std::span<const StagesOfGroup> groups,
                                const Plan& plan);

// The least time between micro-batches where sends are overlapped. 1F1B keeps one micro-batch more
// in flight at a stage than at the next: while one micro-batch goes through k stages in a row and
// back, k of them pass. The slowest of all rows of stages counts.
Seconds pace_of(std::span<const PassTimes> passes, std::span<const Crossing> crossed);

}  // namespace trainyard
