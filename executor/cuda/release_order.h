// When memory that several streams have used may be taken again. It is given back on a stream of
// its own, which comes after its last use on all of them and for which nobody waits. The pool hands
// such memory to another stream only when it is free by then, or when that stream waits for the
// give-back (cudaMemPoolReuseFollowEventDependencies); else it asks the device for more, since the
// host hands over a whole step ahead: gathered weights of every layer would be there at once.
//
// So a stream waits before it takes memory, where otherwise more would be in use than the buffers
// of the program need. It waits for the oldest that is enough, all of which was handed over before:
// ranks stay as free of deadlock as they are one operation after the other, sends apart.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "executor/cuda/status.h"

namespace trainyard {

class ReleaseOrder {
 public:
  // `room`: bytes that may be in use.
  ReleaseOrder(CudaStatus& status, std::size_t room);
  ~ReleaseOrder();
  ReleaseOrder(const ReleaseOrder&) = delete;
  ReleaseOrder& operator=(const ReleaseOrder&) = delete;

  // Where it is given back.
  cudaStream_t stream() const { return stream_; }
  // Just now, so many bytes.
  void released(std::size_t bytes);
  // Before `taker` takes `bytes` while `held` are not given back.
  void make_room(cudaStream_t taker, std::size_t held, std::size_t bytes);
  // Nothing runs any more.
  void forget();

 private:
  struct Released {
    std::size_t total = 0;  // bytes since forget(), this one's too
    cudaEvent_t event = nullptr;
  };

  CudaStatus& status_;
  std::size_t room_;
  cudaStream_t stream_ = nullptr;
  std::deque<Released> released_;
  std::map<cudaStream_t, std::size_t> waited_;  // up to which total
  std::vector<cudaEvent_t> spare_;
};

}  // namespace trainyard
