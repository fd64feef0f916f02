// Which device a rank has: its place among the ranks of its host. Ranks share devices where a host
// has fewer devices than ranks.
#pragma once

#include "executor/cpu/transport.h"

namespace trainyard {

struct DevicePlacement {
  int device = 0;
  bool shared = false;  // by any two ranks of the run
};
// Collective over all ranks. Requires: devices > 0 here.
Expected<DevicePlacement> place_on_device(Transport& transport, int devices);

}  // namespace trainyard
