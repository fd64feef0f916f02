// Decides when a stream may take memory that another stream has given back. Memory that one stream
// alone has used is given back on that stream; memory that several have used, on a stream of its
// own that comes after the last use on all of them. The pool hands memory to another stream only
// when it is free by then, or when that stream waits for the give-back
// (cudaMemPoolReuseFollowEventDependencies); else it asks the device for more. The host hands over
// a whole step ahead, so without such waits the gathered weights of every layer would be held at
// once, beside all that the backward pass has yet to give back.
//
// So a stream waits before it takes memory if otherwise more would be in use than the program's
// buffers need. Any other stream may be anywhere between the release that was last waited for and
// the work it was handed last; the most that it holds on the way counts as in use. The taker waits
// for the oldest releases that suffice. All of them were handed over earlier, so ranks stay as free
// of deadlock as if operations ran one after the other, sends apart.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "executor/cuda/status.h"

namespace trainyard {

class ReleaseOrder {
 public:
  // `room`: bytes that may be in use at once.
  ReleaseOrder(CudaStatus& status, std::size_t room);
  ~ReleaseOrder();
  ReleaseOrder(const ReleaseOrder&) = delete;
  ReleaseOrder& operator=(const ReleaseOrder&) = delete;

  // The stream on which memory that several streams have used is given back.
  cudaStream_t stream() const { return stream_; }
  // `taker` has taken `bytes`; they count as its own until it gives them back itself.
  void taken(cudaStream_t taker, std::size_t bytes);
  // `giver` has just given `bytes` back, whichever stream took them.
  void released(cudaStream_t giver, std::size_t bytes);
  // Makes `taker` wait as long as needed. Call it before it takes `bytes`, while `held` bytes in
  // all are not given back.
  void make_room(cudaStream_t taker, std::size_t held, std::size_t bytes);
  // Starts anew. Requires: no work runs on any stream.
  void forget();

 private:
  struct Release {
    std::int64_t number = 0;  // counted over all streams
    std::int64_t level = 0;   // the giver's level just before this release
    cudaEvent_t event = nullptr;
  };
  struct Giver {
    std::int64_t level = 0;      // bytes taken and not given back by itself, since forget()
    std::vector<Release> peaks;  // releases whose level was not reached again since, oldest first
  };
  struct Unknown;

  CudaStatus& status_;
  std::int64_t room_;
  cudaStream_t stream_ = nullptr;
  std::map<cudaStream_t, Giver> givers_;
  // By taker and giver: the number of the last release that the taker has waited for.
  std::map<std::pair<cudaStream_t, cudaStream_t>, std::int64_t> known_;
  std::int64_t count_ = 0;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace trainyard
