// What the executor needs of a machine: memory, kernels in the order of streams, exchanges with
// other ranks. The executor (executor/rank_executor.h) walks the program and knows when what may
// start; a backend knows how. Operations are handed over in the order of the program and may run
// later: each on its lane, after the events that the lane was told to wait for. So a failure may
// show in a later call than the one that failed.
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

// One operation with its buffers, by operand.
struct Work {
  IssuedOperation issued;
  std::vector<int> buffers;
  int shard = 0;          // of sharded states: which part is this rank's
  std::int64_t step = 0;  // of the run; of an update: of those that were taken
  double loss_scale = 1;  // what gradients are multiplied with
};

// Operations of one lane run one after the other: a stream of the program, of which `pipeline` is
// one for each peer, direction and pass.
struct Lane {
  ProgramStream stream = ProgramStream::compute;
  int peer = -1;  // a stage
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

  // Memory. Buffers are numbered by the executor; a new one may take the number of a released one.
  // `copies`: numbers held for each element that the buffer counts (states of an optimizer);
  // `lane`: whose next operation is the first to use it.
  virtual void allocate(int buffer, const ProgramBuffer& what, int copies, const Lane& lane) = 0;
  virtual void release(int buffer) = 0;
  virtual void write(int buffer, const std::vector<float>& numbers) = 0;
  virtual std::vector<float> read(int buffer) = 0;
  virtual void clear(int buffer) = 0;
  // At most since the start: as the program counts buffers (ProgramBuffer::element_bytes) on the
  // host, what the pool has given out on a device.
  virtual Bytes peak() const = 0;
  // What a device's pool has kept of its memory for that, at most; nothing: there is no pool.
  virtual Bytes reserved() const { return {}; }

  // Work. The error is a sentence that names the call that failed.
  virtual Expected<void> launch(const Work& work) = 0;
  virtual Expected<void> exchange(const Work& work, const GroupMembers& members) = 0;
  virtual Expected<void> send(const Work& work, int to) = 0;
  virtual Expected<void> receive(const Work& work, int from) = 0;
  // Until everything is done, messages included.
  virtual Expected<void> synchronise() = 0;

  // Order and time: an event is reached when all work before it on its lane is done. Events hold
  // until the first that is recorded after a synchronise().
  virtual Event record(const Lane& lane) = 0;
  virtual void wait(const Lane& lane, Event event) = 0;
  // Whether work goes on after it was handed over, so that an event is reached some time later.
  virtual bool runs_later() const { return false; }
  // From any thread. Requires: was recorded, and no other event since that takes its place.
  virtual bool reached(Event) { return true; }
  // Requires: both were reached.
  virtual Seconds between(Event first, Event second) = 0;
};

enum class BackendKind : std::uint8_t { cpu, cuda };
std::string_view name_of(BackendKind kind);  // "cpu"
// Why this program, or this machine, has none of a kind; nothing: it has.
std::optional<Error> not_available(BackendKind kind);

class Transport;
struct Setting;

// Of the rank of `transport`. Collective over its ranks; all that is referred to outlives it.
struct BackendWorld {
  const Setting& setting;
  const Program& program;
  const RankLayout& layout;
  Transport& transport;
  bool alone = false;  // without peers: local traffic in their place
};
Expected<std::unique_ptr<Backend>> make_backend(BackendKind kind, const BackendWorld& world);

}  // namespace trainyard
