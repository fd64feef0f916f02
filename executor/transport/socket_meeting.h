// How the ranks of a launcher that speaks TCP find each other: all come to rank 0, which tells each
// where the others listen, or, to those who came, who never did.
#pragma once

#include <vector>

#include "executor/transport/socket_peer.h"
#include "executor/transport/socket_transport.h"

namespace trainyard {

// Collective over all ranks: a connection to each of them, none to itself. The error names who
// never came within `timeout`, or the address of rank 0 that nobody knew until then.
Expected<std::vector<SocketPeer>> met_peers(const Rendezvous& at, Seconds timeout);

}  // namespace trainyard
