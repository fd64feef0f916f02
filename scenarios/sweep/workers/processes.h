// Workers of a sweep as separate processes on this machine.
#pragma once

#include "scenarios/sweep/workers/pool.h"

namespace trainyard {

// Starts `count` workers. Requires: no thread has been started yet, the result file is not open
// yet, so that workers inherit nothing of it, and `sweep` outlives the workers.
Expected<WorkerPool> start_worker_processes(const Sweep& sweep, int count);

}  // namespace trainyard
