// A sweep among the processes that mpirun or srun started: rank 0 hands out leases and writes, the
// others answer. MPI (executor/supervision/meeting.h) tells them where rank 0 is, and that is all
// it does.
#pragma once

#include <optional>

#include "scenarios/sweep/workers/pool.h"

namespace trainyard {

// On rank 0 the others, ready to answer. On them nothing, when rank 0 needs them no longer.
// `ranks`: as the launcher says.
Expected<std::optional<WorkerPool>> share_sweep(const Sweep& sweep, int ranks);

}  // namespace trainyard
