// What the stages of a step run on: nodes of one kind, or groups of unlike nodes, each of which has
// some stages of one pipeline (planner/heterogeneous/groups.h).
#pragma once

#include <vector>

#include "model/cluster/unlike_cluster.h"
#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// Both jobs outlive the site.
struct StageGroup {
  const PreparedJob* own = nullptr;    // on the group's nodes
  const PreparedJob* whole = nullptr;  // on as many of its nodes as all groups have
  int stages = 0;
};

struct StepSite {
  std::vector<StageGroup> groups;  // in the order of their stages; at least one
  NamedBoundary boundary = {};

  std::size_t group_of(int stage) const;
  // The network and its training, which all groups have in common.
  const PreparedJob& any() const { return *groups.front().whole; }
  Boundary boundary_of(std::size_t group, std::size_t other) const;
  // The largest of any group's stack; calls of other groups contend less.
  double overlap_slowdown() const;
  Seconds step_overhead() const;  // likewise
};

// All stages of the plan on the job's cluster.
StepSite site_of(const PreparedJob& job, const Plan& plan);

// A pipeline through groups of unlike nodes, and the jobs that its site refers to.
class UnlikePipeline {
 public:
  // `order`: the groups at work, in the order of their stages.
  // Requires: the plan fills the devices of these groups, with whole stages in each.
  UnlikePipeline(const Transformer& model, const Training& training, const UnlikeCluster& cluster,
                 const std::vector<std::size_t>& order, const Plan& plan);

  StepSite site() const;

 private:
  std::vector<PreparedJob> own_, whole_;
  std::vector<int> stages_;
  NamedBoundary boundary_;
};

}  // namespace trainyard
