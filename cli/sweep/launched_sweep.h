// A sweep among the processes that mpirun or srun started: rank 0 hands out leases (points to
// answer) and writes the results, the others answer. MPI only tells them the address of rank 0
// (executor/supervision/meeting.h); then they speak TCP.
#pragma once

#include <optional>

#include "scenarios/sweep/workers/pool.h"

namespace trainyard {

// On rank 0, returns the other processes, ready to answer. On the others, answers until rank 0
// needs them no longer, then returns nothing. `ranks` is the number that the launcher names.
Expected<std::optional<WorkerPool>> share_sweep(const Sweep& sweep, int ranks);

}  // namespace trainyard
