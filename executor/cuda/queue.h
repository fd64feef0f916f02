// Where work goes: a stream, the pool that temporary memory comes from, who is told of failures,
// and who knows of those of peers.
#pragma once

#include "executor/cuda/status.h"
#include "executor/cuda/view.h"

namespace trainyard {

class DeviceTransport;

struct Queue {
  CudaStatus& status;
  cudaStream_t stream = nullptr;
  cudaMemPool_t pool = nullptr;
  DeviceTransport* transport = nullptr;  // what the stream may wait for comes by it
};

// Until the stream has done what it was handed. The transport is asked meanwhile, so that a peer's
// failure ends the wait: the status says so.
void wait_for(const Queue& queue);

// Memory for as long as the work that is handed over meanwhile needs it: taken and given back in
// the order of the stream.
class Scratch {
 public:
  Scratch(const Queue& queue, std::int64_t rows, std::int64_t columns, ElementType type,
          int block = 0)
      : queue_(queue), view_{nullptr, rows, columns, type, {nullptr, block}} {
    if (view_.bytes() == 0) return;
    queue.status.check(
        cudaMallocFromPoolAsync(&view_.data, room_for(view_), queue.pool, queue.stream),
        "cudaMallocFromPoolAsync");
    if (is_scaled(type))
      view_.scales.of = static_cast<char*>(view_.data) + scales_at(view_.bytes());
  }
  ~Scratch() {
    if (view_.data != nullptr) {
      queue_.status.check(cudaFreeAsync(view_.data, queue_.stream), "cudaFreeAsync");
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const View& operator*() const { return view_; }
  const View* operator->() const { return &view_; }

 private:
  const Queue& queue_;
  View view_;
};

}  // namespace trainyard
