#include "simulator/step/site.h"

#include <algorithm>
#include <utility>

namespace trainyard {

std::size_t StepSite::group_of(int stage) const {
  std::size_t group = 0;
  for (int end = groups[0].stages; end <= stage; end += groups[group].stages) ++group;
  return group;
}

Boundary StepSite::boundary_of(std::size_t group, std::size_t other) const {
  return boundary.between(groups[group].own->job.cluster, groups[other].own->job.cluster);
}

double StepSite::overlap_slowdown() const {
  double most = 0;
  for (const StageGroup& group : groups) {
    most = std::max(most, group.own->job.training.stack.overlap_slowdown);
  }
  return most;
}

Seconds StepSite::step_overhead() const {
  Seconds most;
  for (const StageGroup& group : groups) {
    most = std::max(most, group.own->job.training.stack.step_overhead);
  }
  return most;
}

StepSite site_of(const PreparedJob& job, const Plan& plan) {
  return {.groups = {{&job, &job, plan.pipeline_parallel}}};
}

UnlikePipeline::UnlikePipeline(const Transformer& model, const Training& training,
                               const UnlikeCluster& cluster, const std::vector<std::size_t>& order,
                               const Plan& plan)
    : boundary_(cluster.boundary) {
  int nodes = 0;
  for (const std::size_t group : order) nodes += cluster.groups[group].nodes;
  for (const std::size_t group : order) {
    const Cluster& own = cluster.groups[group];
    stages_.push_back(own.devices() * plan.pipeline_parallel / plan.devices());
    own_.push_back(prepare({model, own, training}));
    whole_.push_back(prepare({model, with_nodes(own, nodes), training}));
  }
}

StepSite UnlikePipeline::site() const {
  StepSite site{.groups = {}, .boundary = boundary_};
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    site.groups.push_back({&own_[i], &whole_[i], stages_[i]});
  }
  return site;
}

}  // namespace trainyard
