// How busy the links of a cluster are over the simulated step of a plan: what they carry over what
// they could have carried, in their busier direction.
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
  std::vector<double> devices;  // of the busiest link of the device and its NICs
  std::vector<double> links;    // of ClusterMap::links(), all cables together
  std::vector<double> busiest;  // the busiest of those cables
  double most = 0;              // of all of these
  QString summary;              // in a line

  // Plays the step under the conditions of the scenario. Where it is told to stop, an error.
  static Expected<ClusterLoad> of(const ClusterMap& map, const std::atomic<bool>& stop);
  QString describe(const ClusterMap& map, std::size_t link) const;  // in two lines
};

}  // namespace trainyard
