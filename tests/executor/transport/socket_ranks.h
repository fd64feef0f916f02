// Runs the ranks of a job as threads of one process that exchange messages over TCP. Every rank has
// a transport of its own, so tests of what ranks do together need no launcher.
#pragma once

#include <functional>

#include "executor/transport/transport.h"

namespace trainyard {

// Calls `work` on every rank and returns when all ranks have ended. A rank's transport is closed
// when its work returns.
void on_socket_ranks(int ranks, const std::function<void(Transport&)>& work);

}  // namespace trainyard
