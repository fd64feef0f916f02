// Stands in for NCCL where it was not found.
#include "executor/cuda/device_transport.h"

namespace trainyard {

Expected<std::unique_ptr<DeviceTransport>> make_nccl_transport(const Program&, const RankLayout&,
                                                               Transport&) {
  return failure("", "built without NCCL: ranks with a device each cannot reach each other");
}

std::string nccl_version() { return ""; }

}  // namespace trainyard
