// Processes that mpirun or srun started together learn of each other: who is which rank, and one
// text that rank 0 has for all. MPI is initialised for that and finalised at once, so that what the
// processes do afterwards holds up nobody when one of them dies.
#pragma once

#include <functional>
#include <string>

#include "model/expected.h"

namespace trainyard {

struct LaunchedProcess {
  int rank = 0, ranks = 1;
  std::string text;  // rank 0's
};

// Collective over the processes that were started together; once in a process. `say` is called on
// rank 0.
Expected<LaunchedProcess> meet(const std::function<Expected<std::string>()>& say);

}  // namespace trainyard
