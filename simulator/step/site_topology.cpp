#include "simulator/step/site_topology.h"

namespace trainyard {

SiteTopology::SiteTopology(const StepSite& site, std::span<const DegradedLinks> links)
    : boundary_(site.boundary) {
  for (const StageGroup& group : site.groups) {
    clusters_.push_back(&group.own->job.cluster);
    graphs_.push_back(degraded_topology(*group.own, links));
  }
}

std::vector<FabricGroup> SiteTopology::groups() const {
  std::vector<FabricGroup> groups;
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    groups.push_back({clusters_[i], graphs_[i].get()});
  }
  return groups;
}

}  // namespace trainyard
