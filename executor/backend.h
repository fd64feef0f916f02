// What the executor needs of a machine: memory, kernels in the order of streams, exchanges with
// other ranks. The executor (executor/rank_executor.h) walks the program and knows when what may
// start; a backend knows how. Operations are handed over in the order of the program and may run
// later: each on its stream, after the events that the stream was told to wait for.
//
// Numbers go in and out as float, whatever the machine stores them in.
#pragma once

#include <cstdint>
#include <vector>

#include "model/expected.h"
#include "model/program/rank_layout.h"
#include "model/program/view.h"

namespace trainyard {

// One operation with its buffers, by operand.
struct Work {
  IssuedOperation issued;
  std::vector<int> buffers;
  int shard = 0;          // of sharded states: which part is this rank's
  std::int64_t step = 0;  // of the run
};

class Backend {
 public:
  using Event = std::int64_t;

  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // Memory. Buffers are numbered by the executor; a new one may take the number of a released one.
  // `copies`: numbers held for each element that the buffer counts (states of an optimizer).
  virtual void allocate(int buffer, const ProgramBuffer& what, int copies) = 0;
  virtual void release(int buffer) = 0;
  virtual void write(int buffer, const std::vector<float>& numbers) = 0;
  virtual std::vector<float> read(int buffer) = 0;
  virtual void clear(int buffer) = 0;
  // As the program counts them (ProgramBuffer::element_bytes): now, and at most since the start.
  virtual Bytes held() const = 0;
  virtual Bytes peak() const = 0;

  // Work. The error is a sentence that names the call that failed.
  virtual void launch(const Work& work) = 0;
  virtual Expected<void> exchange(const Work& work, const GroupMembers& members) = 0;
  virtual Expected<void> send(const Work& work, int to) = 0;
  virtual Expected<void> receive(const Work& work, int from) = 0;
  // Until everything is done, messages included.
  virtual Expected<void> synchronise() = 0;

  // Order and time: an event is reached when all work before it on its stream is done.
  virtual Event record(ProgramStream stream) = 0;
  virtual void wait(ProgramStream stream, Event event) = 0;
  // Requires: both were reached.
  virtual Seconds between(Event first, Event second) = 0;
};

}  // namespace trainyard
