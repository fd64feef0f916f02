// How ranks exchange numbers in device memory (executor/transport/transport.h is the host's
// counterpart). A call hands work to a queue; its result is there when the queue has come so far.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "executor/cuda/queue.h"
#include "executor/transport/transport.h"
#include "model/program/program.h"

namespace trainyard {

class DeviceTransport {
 public:
  DeviceTransport() = default;
  DeviceTransport(const DeviceTransport&) = delete;
  DeviceTransport& operator=(const DeviceTransport&) = delete;
  virtual ~DeviceTransport() = default;

  // Reduces in place.
  virtual Expected<void> all_reduce(const Queue& queue, Group group, const View& numbers,
                                    Reduction how) = 0;
  virtual Expected<void> reduce_scatter(const Queue& queue, Group group, const View& all,
                                        const Counts& counts, const View& mine) = 0;
  virtual Expected<void> all_gather(const Queue& queue, Group group, const View& mine,
                                    const Counts& counts, const View& all) = 0;
  virtual Expected<void> all_to_all(const Queue& queue, Group group, const View& to,
                                    const Counts& to_counts, const View& from,
                                    const Counts& from_counts) = 0;
  // One step around a ring. On: sends to the next member and receives from the one before; back:
  // the other way round.
  virtual Expected<void> pass(const Queue& queue, Group group, RingWay way, const View& mine,
                              const View& received) = 0;
  virtual Expected<void> send(const Queue& queue, int to, int way, const View& numbers) = 0;
  virtual Expected<void> receive(const Queue& queue, int from, int way, const View& numbers) = 0;
  // Makes the calls of one operation as a single message where the transport can; else each pays
  // the latency of a message. Requires: `calls` take no memory between them.
  virtual Expected<void> at_once(const std::function<Expected<void>()>& calls) { return calls(); }
  // An error that has shown since; asked again and again while the host waits for work.
  virtual Expected<void> check() = 0;
  // Waits until every message sent has left.
  virtual Expected<void> wait_for_messages() = 0;
};

// Goes through the host's memory and transport, for ranks that share a device. Requires: `host`
// outlives it.
std::unique_ptr<DeviceTransport> make_staged_transport(Transport& host);
// Makes local copies of as many bytes in the place of messages to and from peers.
std::unique_ptr<DeviceTransport> make_stand_in_device_transport();
// Uses NCCL, with a communicator for each group and one for each pair of ranks, direction and pass.
// Collective over all ranks of `host`, each of which has a device of its own.
Expected<std::unique_ptr<DeviceTransport>> make_nccl_transport(const Program& program,
                                                               const RankLayout& layout,
                                                               Transport& host);
// Version of the library, such as "2.27.3"; empty where the program was built without it.
std::string nccl_version();

}  // namespace trainyard
