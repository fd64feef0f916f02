// How busy the links of a cluster are during the simulated step of a plan. The load of a link is
// the bytes that it carries in a step over bandwidth × step time, in its busier direction. Example:
// a NIC of 50 GB/s that sends 10 GB in a step of 1 s has a load of 0.2.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <atomic>
#include <memory>
#include <vector>

#include "model/expected.h"

namespace trainyard {

class ClusterMap;

struct ClusterLoad {
  Q_DECLARE_TR_FUNCTIONS(ClusterLoad)
 public:
  std::vector<double> devices;  // [device]: load of the busiest link at the device or its NICs
  std::vector<double> links;    // [ClusterMap::links()]: load of all cables of the link together
  std::vector<double> busiest;  // [ClusterMap::links()]: load of the link's busiest cable
  double most = 0;              // the largest of all these loads
  QString summary;              // one line

  // Simulates the step under the conditions of the scenario. An error if it is told to stop.
  static Expected<ClusterLoad> of(const ClusterMap& map, const std::atomic<bool>& stop);
  QString describe(const ClusterMap& map, std::size_t link) const;  // two lines
};

}  // namespace trainyard
