// Where work is handed over: a stream, the pool for its temporary memory, the status that records
// failures, and the transport that knows of peers' failures.
#pragma once

#include "executor/cuda/status.h"
#include "executor/cuda/view.h"

namespace trainyard {

class DeviceTransport;

struct Queue {
  CudaStatus& status;
  cudaStream_t stream = nullptr;
  cudaMemPool_t pool = nullptr;
  // may be null; work on the stream may wait for its messages
  DeviceTransport* transport = nullptr;
};

// Waits until the stream has done what it was handed. Meanwhile it asks the transport, so that a
// peer's failure ends the wait and is recorded in the status.
void wait_for(const Queue& queue);

// Temporary memory, taken and given back in the order of the stream: work that is handed over while
// this object lives may use it.
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
