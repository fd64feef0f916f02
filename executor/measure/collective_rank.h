// Measures collectives among rank processes: either those that the supervisor starts, whose results
// stand on the board of rank 0, or those that a launcher has started on one or more hosts.
#pragma once

#include <filesystem>

#include "executor/backend.h"
#include "executor/launcher.h"
#include "executor/measure/measure_collectives.h"
#include "executor/supervision/board.h"

namespace trainyard {

// Runs in a rank process under the supervisor: measures the collectives of a backend for about
// `budget`.
Expected<void> run_collective_rank(const std::filesystem::path& folder, BackendKind backend,
                                   Seconds budget);
// Writes the results into the room of a board, and reads them back in the supervisor. Fails where
// the room is too small.
Expected<void> write_samples(const GroupSamples& samples, Board& board);
// Requires: write_samples() has filled the board's room.
GroupSamples written_samples(Board& board);

// Measures among all processes that a launcher has started, as many on every host. Rank 0 gets all
// results, another rank those of the groups that it is in. Collective; may be called once in a
// process.
struct LaunchedSamples {
  int rank = 0, hosts = 1;
  GroupSamples groups;
};
Expected<LaunchedSamples> measure_launched(BackendKind backend, const Launcher& launcher,
                                           Seconds budget,
                                           const std::function<void(double fraction)>& progress);

// "Open MPI v4.1.4" or "no MPI"; does not initialise the library.
std::string mpi_library();

}  // namespace trainyard
