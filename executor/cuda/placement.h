// Which device a rank has: its place among the ranks of its host, of the devices that it sees.
// Ranks share devices where a host has fewer devices than ranks; where a launcher shows each rank
// one of its own (srun --gpus-per-task=1) they do not, although each calls it the first.
#pragma once

#include <functional>
#include <string>

#include "executor/transport/transport.h"

namespace trainyard {

struct DevicePlacement {
  int device = 0;
  bool shared = false;  // by any two ranks of the run
};
// `address`: what tells a device from the others of its host. Collective over all ranks. Requires:
// devices > 0 here.
Expected<DevicePlacement> place_on_device(Transport& transport, int devices,
                                          const std::function<std::string(int device)>& address);

// The same of the devices that CUDA shows, which this process uses from then on. Collective over
// all ranks; the error: there is none.
Expected<DevicePlacement> placed(Transport& transport);

}  // namespace trainyard
