#include "model/cost/kernels/memory_bound.h"

namespace trainyard {

Seconds memory_bound_time(const Device& device, Bytes traffic) {
  if (traffic.value() <= 0) return Seconds(0);
  return traffic / (device.memory_bandwidth * device.rates.memory) + device.rates.launch;
}

}  // namespace trainyard
