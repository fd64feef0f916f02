#include "executor/cuda/release_order.h"

#include <algorithm>

namespace trainyard {

ReleaseOrder::ReleaseOrder(CudaStatus& status, std::size_t room) : status_(status), room_(room) {
  status_.check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                "cudaStreamCreateWithFlags");
}

ReleaseOrder::~ReleaseOrder() {
  forget();
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
  cudaStreamDestroy(stream_);
}

void ReleaseOrder::released(std::size_t bytes) {
  Released now{(released_.empty() ? 0 : released_.back().total) + bytes, nullptr};
  if (spare_.empty()) {
    status_.check(cudaEventCreateWithFlags(&now.event, cudaEventDisableTiming),
                  "cudaEventCreateWithFlags");
  } else {
    now.event = spare_.back();
    spare_.pop_back();
  }
  status_.check(cudaEventRecord(now.event, stream_), "cudaEventRecord");
  released_.push_back(now);
}

void ReleaseOrder::make_room(cudaStream_t taker, std::size_t held, std::size_t bytes) {
  if (released_.empty()) return;
  std::size_t& waited = waited_[taker];
  const std::size_t in_use = held + bytes + released_.back().total - waited;
  if (in_use <= room_ || waited == released_.back().total) return;
  // The oldest after which enough is free; else all of it.
  const std::size_t enough = waited + (in_use - room_);
  auto last = std::ranges::lower_bound(released_, enough, {}, &Released::total);
  if (last == released_.end()) --last;
  status_.check(cudaStreamWaitEvent(taker, last->event, 0), "cudaStreamWaitEvent");
  waited = last->total;
}

void ReleaseOrder::forget() {
  for (const Released& of : released_) spare_.push_back(of.event);
  released_.clear();
  waited_.clear();
}

}  // namespace trainyard
