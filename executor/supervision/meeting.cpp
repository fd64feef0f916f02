#include "executor/supervision/meeting.h"

#ifdef TRAINYARD_HAS_MPI
#include <mpi.h>
#endif

namespace trainyard {
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
