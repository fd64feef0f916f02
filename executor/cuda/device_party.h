// Collectives of the CUDA backend, as executor/measure/measure_collectives.h measures them: by NCCL
// where every rank has a device of its own, through the host's memory where they share one. An
// exchange is timed by events of its stream, staging included; the arithmetic beside it is a
// product in bf16 on another stream.
#pragma once

#include "executor/measure/measure_collectives.h"

namespace trainyard {

class DeviceParty {
 public:
  DeviceParty() = default;
  DeviceParty(const DeviceParty&) = delete;
  DeviceParty& operator=(const DeviceParty&) = delete;
  virtual ~DeviceParty() = default;
  virtual CalibrationParty party() = 0;  // Requires: this outlives it
  virtual bool shared() const = 0;       // any two ranks have the same device
  virtual Expected<void> state() const = 0;
};

// Collective over the ranks of `all`. `transport`: the host's among the first so many ranks,
// nothing on the others.
Expected<std::unique_ptr<DeviceParty>> make_device_party(
    Transport& all, std::function<std::unique_ptr<Transport>(int ranks)> transport);

}  // namespace trainyard
