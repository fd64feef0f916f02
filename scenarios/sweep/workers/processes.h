// Workers of a sweep as processes of their own on this machine.
#pragma once

#include "scenarios/sweep/workers/pool.h"

namespace trainyard {

// Requires: no thread has been started yet. Before the result file is opened, so that workers hold
// nothing of it. Refers to `sweep`.
Expected<WorkerPool> start_worker_processes(const Sweep& sweep, int count);

}  // namespace trainyard
