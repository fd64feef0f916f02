// Collectives measured among ranks of their own, which the supervisor starts; what they find stands
// on the board of rank 0.
#pragma once

#include <filesystem>

#include "executor/backend.h"
#include "executor/measure/measure_collectives.h"
#include "executor/supervision/board.h"

namespace trainyard {

// In a rank process: measures those of a backend, for about `budget`.
Expected<void> run_collective_rank(const std::filesystem::path& folder, BackendKind backend,
                                   Seconds budget);
// In the supervisor's, when the ranks are done.
GroupSamples group_samples(Board& board);

// "Open MPI v4.1.4", "no MPI". Initialises nothing.
std::string mpi_library();

}  // namespace trainyard
