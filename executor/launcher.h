// What a launcher's variables in the environment say of this process: one of several that it has
// started, and how they reach each other. Open MPI, MPICH and Slurm with PMI or PMIx: by MPI;
// torchrun's convention (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT): by TCP. A task of a Slurm
// step of several without either is one of them too: MPI shows that such tasks do not know each
// other, and then nothing runs side by side. Every command reads them here, in one order.
#pragma once

#include <optional>
#include <string>

#include "model/expected.h"

namespace trainyard {

enum class LauncherKind { none, mpi, torchrun };

struct Launcher {
  LauncherKind kind = LauncherKind::none;
  int rank = 0, ranks = 1;
  int local_ranks = 1;  // on this host, this one among them; 1 where the launcher does not say
  // Of rank 0, where they speak TCP.
  std::string address = "127.0.0.1", port = "29500";

  bool has_started_several() const { return ranks > 1; }
};

// The error names a variable that is no number, or a rank that there is not.
Expected<Launcher> launcher_in_environment();

// Where processes have to meet by MPI: why those of this launcher do not.
std::optional<Error> not_by_mpi(const Launcher& launcher);
// Where MPI knows of one process and the launcher has started several.
Error strangers(int ranks);

}  // namespace trainyard
