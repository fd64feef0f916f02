// Processes that mpirun or srun started together learn which rank each is, and one text that rank 0
// has for all. MPI is initialised for that and finalised at once, so that a process that dies later
// does not hold up the others.
#pragma once

#include <functional>
#include <string>

#include "model/expected.h"

namespace trainyard {

struct LaunchedProcess {
  int rank = 0, ranks = 1;
  std::string text;  // rank 0's
};

// Collective over the processes that were started together; may be called once in a process. `say`
// makes the text and is called on rank 0 alone.
Expected<LaunchedProcess> meet(const std::function<Expected<std::string>()>& say);

}  // namespace trainyard
