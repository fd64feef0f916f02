// What a launcher's environment variables say of this process: whether it is one of several started
// together, and how they reach each other. Open MPI, MPICH, and Slurm with PMI or PMIx: by MPI;
// torchrun's convention (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT): by TCP. A task of a Slurm
// step with several tasks but none of these also counts as MPI; MPI then shows that such tasks do
// not know each other, and the command ends rather than run once for each. Every command reads the
// variables here, in one order.
#pragma once

#include <optional>
#include <string>

#include "model/expected.h"

namespace trainyard {

enum class LauncherKind { none, mpi, torchrun };

struct Launcher {
  LauncherKind kind = LauncherKind::none;
  int rank = 0, ranks = 1;
  // processes on this host, this one included; 1 where the launcher does not say
  int local_ranks = 1;
  // Where rank 0 listens, for torchrun's convention.
  std::string address = "127.0.0.1", port = "29500";

  bool has_started_several() const { return ranks > 1; }
};

// The error names a variable that is not a number, or a rank that is out of range.
Expected<Launcher> launcher_in_environment();

// For commands whose processes must meet by MPI: why those of this launcher do not; empty: they do.
std::optional<Error> not_by_mpi(const Launcher& launcher);
// The error where the launcher has started several processes but MPI knows of only one.
Error strangers(int ranks);

}  // namespace trainyard
