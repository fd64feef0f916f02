// How ranks that speak TCP find each other: all connect to rank 0, which tells each of them where
// the others listen. If some never come, it tells that to those who did.
#pragma once

#include <vector>

#include "executor/transport/socket_peer.h"
#include "executor/transport/socket_transport.h"

namespace trainyard {

// Collective over all ranks: returns a connection to each of them, none to itself. The error names
// who never came within `timeout`, or the address of rank 0 if no host of that name was found.
Expected<std::vector<SocketPeer>> met_peers(const Rendezvous& at, Seconds timeout);

}  // namespace trainyard
