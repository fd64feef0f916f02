// Lets executor/measure/measure_collectives.h measure the collectives of the CUDA backend: NCCL
// where every rank has a device of its own, the host's memory where ranks share one. An exchange is
// timed by events of its stream, staging included; the arithmetic beside it is a bf16 product on
// another stream.
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
  virtual bool shared() const = 0;       // whether any two ranks share a device
  virtual Expected<void> state() const = 0;
};

// Collective over the ranks of `all`. `transport` makes the host's transport among the first
// `ranks` ranks, and a null pointer on the others.
Expected<std::unique_ptr<DeviceParty>> make_device_party(
    Transport& all, std::function<std::unique_ptr<Transport>(int ranks)> transport);

}  // namespace trainyard
