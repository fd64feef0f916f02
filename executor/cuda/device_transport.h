// How ranks reach each other with numbers in device memory; executor/transport/transport.h for the
// host. A call hands work to a queue; what it moves is there when the queue has come so far.
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

  // In place.
  virtual Expected<void> all_reduce(const Queue& queue, Group group, const View& numbers,
                                    Reduction how) = 0;
  virtual Expected<void> reduce_scatter(const Queue& queue, Group group, const View& all,
                                        const Counts& counts, const View& mine) = 0;
  virtual Expected<void> all_gather(const Queue& queue, Group group, const View& mine,
                                    const Counts& counts, const View& all) = 0;
  virtual Expected<void> all_to_all(const Queue& queue, Group group, const View& to,
                                    const Counts& to_counts, const View& from,
                                    const Counts& from_counts) = 0;
  // On: to the next member, from the one before. Back: the other way round.
  virtual Expected<void> pass(const Queue& queue, Group group, RingWay way, const View& mine,
                              const View& received) = 0;
  virtual Expected<void> send(const Queue& queue, int to, int way, const View& numbers) = 0;
  virtual Expected<void> receive(const Queue& queue, int from, int way, const View& numbers) = 0;
  // Calls of one operation, which need no memory before they are handed over: as one message, where
  // there is such a thing. Else each pays the time of a message.
  virtual Expected<void> at_once(const std::function<Expected<void>()>& calls) { return calls(); }
  // Whether something went wrong since; asked again and again while work is under way.
  virtual Expected<void> check() = 0;
  // Until every message sent has left.
  virtual Expected<void> wait_for_messages() = 0;
};

// Through the host's memory and its transport: for ranks that share a device. Requires: `host`
// outlives it.
std::unique_ptr<DeviceTransport> make_staged_transport(Transport& host);
// Local copies of as many bytes in the place of peers.
std::unique_ptr<DeviceTransport> make_stand_in_device_transport();
// By NCCL: a communicator for each group, and for each pair of ranks, way and pass. Collective over
// all ranks of `host`, each with a device of its own.
Expected<std::unique_ptr<DeviceTransport>> make_nccl_transport(const Program& program,
                                                               const RankLayout& layout,
                                                               Transport& host);
// "2.27.3", of the library; empty where the program was built without it.
std::string nccl_version();

}  // namespace trainyard
