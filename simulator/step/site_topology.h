// The topologies of what the stages of a step run on.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "simulator/network/fabrics.h"
#include "simulator/step/site.h"

namespace trainyard {

class SiteTopology {
 public:
  // With all of these links degraded. Requires: no links, or one group.
  SiteTopology(const StepSite& site, std::span<const DegradedLinks> links);

  std::vector<FabricGroup> groups() const;
  const NamedBoundary& boundary() const { return boundary_; }

 private:
  std::vector<const Cluster*> clusters_;
  std::vector<std::shared_ptr<const TopologyGraph>> graphs_;
  NamedBoundary boundary_;
};

}  // namespace trainyard
