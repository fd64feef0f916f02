// What the executor needs of a machine: memory, kernels that run in the order of streams, and
// exchanges with other ranks. The executor (executor/rank_executor.h) walks the program and decides
// what may start when; a backend carries it out. Operations are handed over in the order of the
// program and may run later, each on its lane and after the events that the lane was told to wait
// for. A failure may therefore show in a later call than the one that caused it.
//
// Numbers go in and out as float, whatever the machine stores them in.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "model/expected.h"
#include "model/program/rank_layout.h"
#include "model/program/view.h"

namespace trainyard {

// One operation and, for each of its operands, the number of its buffer.
struct Work {
  IssuedOperation issued;
  std::vector<int> buffers;
  int shard = 0;          // which part of sharded states this rank has
  std::int64_t step = 0;  // number of the batch; for an update, steps taken so far
  double loss_scale = 1;  // factor that the gradients carry (executor/loss_scale.h)
};

// Operations of one lane run one after the other. A lane is a stream of the program; the `pipeline`
// stream has one lane for each peer, direction and pass.
struct Lane {
  ProgramStream stream = ProgramStream::compute;
  int peer = -1;  // peer stage; −1: not a send or receive
  bool sends = false;
  Phase pass = Phase::forward;
  auto operator<=>(const Lane&) const = default;
};
Lane lane_of(const IssuedOperation& issued);

class Backend {
 public:
  using Event = std::int64_t;

  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // Memory. The executor numbers the buffers; a new buffer may reuse the number of a released one.
  // `copies`: numbers held for each element that the buffer counts (above 1 for optimizer states).
  // `lane`: the lane whose next operation is the first to use the buffer.
  virtual void allocate(int buffer, const ProgramBuffer& what, int copies, const Lane& lane) = 0;
  virtual void release(int buffer) = 0;
  virtual void write(int buffer, const std::vector<float>& numbers) = 0;
  virtual std::vector<float> read(int buffer) = 0;
  virtual void clear(int buffer) = 0;
  // Largest memory in use since the start. On the host it is the sum of the buffers as the program
  // counts them (ProgramBuffer::element_bytes); on a device, what the memory pool has given out.
  virtual Bytes peak() const = 0;
  // Most memory that a device's pool has reserved from the device for that; zero without a pool.
  virtual Bytes reserved() const { return {}; }

  // Work. An error is a sentence that names the call that failed.
  virtual Expected<void> launch(const Work& work) = 0;
  virtual Expected<void> exchange(const Work& work, const GroupMembers& members) = 0;
  virtual Expected<void> send(const Work& work, int to) = 0;
  virtual Expected<void> receive(const Work& work, int from) = 0;
  // Waits until all work is done and all messages have left.
  virtual Expected<void> synchronise() = 0;

  // Order and time. An event is reached when all earlier work on its lane is done. Events stay
  // valid until the first one that is recorded after a synchronise().
  virtual Event record(const Lane& lane) = 0;
  virtual void wait(const Lane& lane, Event event) = 0;
  // Whether work runs asynchronously, so that an event is reached some time after it was recorded.
  virtual bool runs_later() const { return false; }
  // May be called from any thread. Requires: the event was recorded and is still valid.
  virtual bool reached(Event) { return true; }
  // Time from the first event to the second. Requires: both were reached.
  virtual Seconds between(Event first, Event second) = 0;
};

enum class BackendKind : std::uint8_t { cpu, cuda };
std::string_view name_of(BackendKind kind);  // "cpu"
// Why this program or this machine cannot offer a backend of this kind; empty: it can.
std::optional<Error> not_available(BackendKind kind);

class Transport;
struct Setting;

// What a backend is made for: the rank of `transport`. Making one is collective over the ranks of
// `transport`. Requires: everything referred to outlives the backend.
struct BackendWorld {
  const Setting& setting;
  const Program& program;
  const RankLayout& layout;
  Transport& transport;
  bool alone = false;  // the rank runs without peers; local copies stand in for their messages
};
Expected<std::unique_ptr<Backend>> make_backend(BackendKind kind, const BackendWorld& world);

}  // namespace trainyard
