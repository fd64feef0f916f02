#include "executor/supervision/meeting.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#ifdef TRAINYARD_HAS_MPI
#include <mpi.h>
#endif

namespace trainyard {
namespace {

int variable(const char* name, int otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
  int number = otherwise;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

LaunchedProcess launched_as() {
  struct Launcher {
    const char *rank, *ranks;
  };
  constexpr std::array kLaunchers = {Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                     Launcher{"PMI_RANK", "PMI_SIZE"},
                                     Launcher{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const Launcher& launcher : kLaunchers) {
    const int ranks = variable(launcher.ranks, 1);
    if (ranks > 1) return {variable(launcher.rank, 0), ranks, ""};
  }
  return {};
}

#ifdef TRAINYARD_HAS_MPI

Expected<LaunchedProcess> meet(const std::function<Expected<std::string>()>& say) {
  MPI_Init(nullptr, nullptr);
  LaunchedProcess meeting;
  MPI_Comm_rank(MPI_COMM_WORLD, &meeting.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &meeting.ranks);
  Expected<std::string> said = meeting.rank == 0 ? say() : Expected<std::string>();
  if (said) meeting.text = *said;
  auto size = static_cast<int>(meeting.text.size());
  MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
  meeting.text.resize(static_cast<std::size_t>(size));
  MPI_Bcast(meeting.text.data(), size, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return said ? Expected<LaunchedProcess>(std::move(meeting)) : tl::unexpected(said.error());
}

#else

Expected<LaunchedProcess> meet(const std::function<Expected<std::string>()>&) {
  return failure("mpi", "processes that were started together cannot meet: built without MPI");
}

#endif

}  // namespace trainyard
