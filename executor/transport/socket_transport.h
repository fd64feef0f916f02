// Ranks of a launcher that only says where rank 0 is (torchrun's convention, executor/launcher.h):
// they meet at rank 0 and then speak TCP, each with every other. Made for controlling and for
// verifying, not for speed.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "executor/transport/transport.h"
#include "model/units.h"

namespace trainyard {

struct Rendezvous {
  int rank = 0, ranks = 1;
  std::string address = "127.0.0.1", port = "29500";  // where rank 0 listens
};

// Collective over all ranks. The error names who never came within `timeout`, or the address of
// rank 0 if no host of that name was found. Requires: `layout` and `call` outlive the transport.
Expected<std::unique_ptr<Transport>> make_socket_transport(const Rendezvous& at,
                                                           const RankLayout& layout,
                                                           std::atomic<RankCall>& call,
                                                           Seconds timeout);

}  // namespace trainyard
