// Ranks of a run as threads of one process that speak TCP, each with a transport of its own: for
// tests of what ranks do together, without a launcher.
#pragma once

#include <functional>

#include "executor/transport/transport.h"

namespace trainyard {

// Ends when every rank has; a rank's transport ends with its work.
void on_socket_ranks(int ranks, const std::function<void(Transport&)>& work);

}  // namespace trainyard
