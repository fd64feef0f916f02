#include "executor/cuda/queue.h"

#include "executor/cuda/device_transport.h"

namespace trainyard {

void wait_for(const Queue& queue) {
  while (queue.status.ok()) {
    const cudaError_t now = cudaStreamQuery(queue.stream);
    if (now != cudaErrorNotReady) return queue.status.check(now, "cudaStreamQuery");
    cudaGetLastError();  // clears the code; otherwise the next launch would report it
    if (queue.transport == nullptr) continue;
    if (auto well = queue.transport->check(); !well) queue.status.fail(well.error().message);
  }
}

}  // namespace trainyard
