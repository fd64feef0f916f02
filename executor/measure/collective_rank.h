// Collectives measured among ranks of their own: those that the supervisor starts, where what they
// find stands on the board of rank 0, or those that a launcher has started on one or more hosts.
#pragma once

#include <filesystem>

#include "executor/backend.h"
#include "executor/launcher.h"
#include "executor/measure/measure_collectives.h"
#include "executor/supervision/board.h"

namespace trainyard {

// In a rank process: measures those of a backend, for about `budget`.
Expected<void> run_collective_rank(const std::filesystem::path& folder, BackendKind backend,
                                   Seconds budget);
// What they find, on a board that has the room for it, for the supervisor when they are done.
Expected<void> write_samples(const GroupSamples& samples, Board& board);
// Requires: nothing else was written into the board's room.
GroupSamples written_samples(Board& board);

// Where a launcher has started the processes, as many on every host: by all of them, which find the
// same. Collective; once in a process.
struct LaunchedSamples {
  int rank = 0, hosts = 1;
  GroupSamples groups;
};
Expected<LaunchedSamples> measure_launched(BackendKind backend, const Launcher& launcher,
                                           Seconds budget,
                                           const std::function<void(double fraction)>& progress);

// "Open MPI v4.1.4", "no MPI". Initialises nothing.
std::string mpi_library();

}  // namespace trainyard
