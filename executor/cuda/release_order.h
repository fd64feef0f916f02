// When memory that another stream has given back may be taken again. What several streams have used
// is given back on a stream of its own, which comes after its last use on all of them and for which
// nobody waits; what one has used alone, on that one. The pool hands such memory to another stream
// only when it is free by then, or when that stream waits for the give-back
// (cudaMemPoolReuseFollowEventDependencies); else it asks the device for more, since the host hands
// over a whole step ahead: gathered weights of every layer would be there at once, beside all that
// the backward pass has yet to give back.
//
// So a stream waits before it takes memory, where otherwise more would be in use than the buffers
// of the program need. Of another stream, which may be anywhere between what is waited for and what
// it was handed last, the most that it holds on the way is in use. It waits for the oldest that is
// enough, all of which was handed over before: ranks stay as free of deadlock as they are one
// operation after the other, sends apart.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
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

  // Where it is given back that several streams have used.
  cudaStream_t stream() const { return stream_; }
  // So many bytes, which count as that stream's until it gives them back itself.
  void taken(cudaStream_t taker, std::size_t bytes);
  // Just now, on that stream or another.
  void released(cudaStream_t giver, std::size_t bytes);
  // Before `taker` takes `bytes` while `held` are not given back.
  void make_room(cudaStream_t taker, std::size_t held, std::size_t bytes);
  // Nothing runs any more.
  void forget();

 private:
  struct Release {
    std::int64_t number = 0;  // in the order of all
    std::int64_t level = 0;   // of its stream, before it
    cudaEvent_t event = nullptr;
  };
  struct Giver {
    std::int64_t level = 0;      // bytes taken and not given back by itself, since forget()
    std::vector<Release> peaks;  // those at whose level it has not been again, the oldest first
  };
  struct Unknown;

  CudaStatus& status_;
  std::int64_t room_;
  cudaStream_t stream_ = nullptr;
  std::map<cudaStream_t, Giver> givers_;
  // Of a taker and a giver: the number of the last release that it has waited for.
  std::map<std::pair<cudaStream_t, cudaStream_t>, std::int64_t> known_;
  std::int64_t count_ = 0;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace trainyard
