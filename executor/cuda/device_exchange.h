// What the collectives of a program do, by the calls of a device transport: which rows and parts
// go where (executor/cpu/exchange.h, on a device).
#pragma once

#include "executor/cuda/compute.h"
#include "executor/cuda/device_transport.h"

namespace trainyard {

struct DeviceExchange {
  const DeviceWork& work;
  DeviceTransport& transport;
  int members = 1;
  int self = 0;  // among the members
};

Expected<void> take_part(const DeviceExchange& exchange);

}  // namespace trainyard
