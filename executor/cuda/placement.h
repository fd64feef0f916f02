// Which device a rank uses: the i-th rank of a host takes the i-th device that it sees, in turn.
// Ranks share devices where a host has fewer devices than ranks. Where a launcher shows each rank
// one device of its own (srun --gpus-per-task=1) they do not, although each rank calls its device
// the first.
#pragma once

#include <functional>
#include <string>

#include "executor/transport/transport.h"

namespace trainyard {

struct DevicePlacement {
  int device = 0;
  bool shared = false;  // any two ranks of the run share a device
};
// `address` identifies a device among those of its host. Collective over all ranks. Requires: this
// process sees `devices` > 0.
Expected<DevicePlacement> place_on_device(Transport& transport, int devices,
                                          const std::function<std::string(int device)>& address);

// The same for the devices that CUDA shows; the process uses the chosen one from then on.
// Collective over all ranks. The error: there is no device.
Expected<DevicePlacement> placed(Transport& transport);

}  // namespace trainyard
