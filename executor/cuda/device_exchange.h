// Carries out the collectives of a program by calls of a device transport: decides which rows and
// parts go where (executor/cpu/exchange.h does so on the host).
#pragma once

#include "executor/cuda/compute.h"
#include "executor/cuda/device_transport.h"

namespace trainyard {

struct DeviceExchange {
  const DeviceWork& work;
  DeviceTransport& transport;
  int members = 1;
  int self = 0;  // index of this rank among the members
};

Expected<void> take_part(const DeviceExchange& exchange);

}  // namespace trainyard
