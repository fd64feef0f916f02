// Ranks that another launcher has started, which sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
// in their environment (torchrun's convention): they meet at rank 0 and then speak TCP, each with
// every other. Made for controlling and for verifying, not for speed.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "executor/cpu/transport.h"
#include "model/units.h"

namespace trainyard {

struct Rendezvous {
  int rank = 0, ranks = 1;
  std::string address = "127.0.0.1", port = "29500";  // of rank 0
};
// Nothing: the environment names no rank.
std::optional<Rendezvous> rendezvous_in_environment();
// RANK and WORLD_SIZE are there and name none, or MASTER_PORT is no port.
std::optional<Error> wrong_rendezvous();

// Collective over all ranks; `layout` outlives it. The error names who never came, or
// the address of rank 0 that nobody knows.
Expected<std::unique_ptr<Transport>> make_socket_transport(const Rendezvous& at,
                                                           const RankLayout& layout,
                                                           std::atomic<RankCall>& call,
                                                           Seconds timeout);

}  // namespace trainyard
